"""How to choose the parameters of the friction elements: what is stable, what an encoder allows, what to begin with.

==============================  ==================================================================================
question                        answer
==============================  ==================================================================================
model C next to a bare mass     `contact_is_stable`, `contact_is_nonoscillatory`, `critical_stiffness`
model B or C on a device        `stiffness_limit`, `damping_limit`, exact; `stiffness_rule`, the rule of thumb
how soon it has settled         `settling_time`
model A or D on an arm          `sliding_mass_limit`, exact, of an arm that knows itself (`SampledArm`);
                                `mass_limit`, exact, of a servo of second order; `mass_rule`, the rule of thumb
any of them behind an encoder   `count_jump`, `hold_buzz`, `smallest_force`
a law that falls with speed     `smallest_stribeck_velocity`
what to begin with              `suggest`
is this element all right       `advise`
how stiff may a wall be         `wall_limit`, and `corner_factor` where two meet, exact; `advise_walls`, whether
                                those of a scene are
==============================  ==================================================================================

The limits are exact for the device that `Handle`, `PositionServo` or `SampledArm` describes: they are where an
eigenvalue of its matrix for one period leaves the unit circle. Nothing here is compiled or waits for a compiler.
"""

from haptics.design.advice import Advice, Severity, advise
from haptics.design.arms import SampledArm
from haptics.design.bounds import (
    CRITICAL_NONOSCILLATORY,
    CRITICAL_STABLE,
    MARGIN,
    PRESLIDING,
    SETTLED,
    contact_eigenvalues,
    contact_is_nonoscillatory,
    contact_is_stable,
    count_jump,
    critical_stiffness,
    damping_limit,
    hold_buzz,
    mass_limit,
    mass_rule,
    settling_time,
    sliding_mass_limit,
    smallest_force,
    smallest_stribeck_velocity,
    stiffness_limit,
    stiffness_rule,
)
from haptics.design.corners import corner_factor
from haptics.design.loops import FIRM_GRIP, Coupling, Handle, PositionServo, growth, sliding_matrix, stuck_matrix
from haptics.design.suggestion import Suggestion, suggest
from haptics.design.walls import advise_walls, wall_limit

__all__ = [
    "CRITICAL_NONOSCILLATORY",
    "CRITICAL_STABLE",
    "FIRM_GRIP",
    "MARGIN",
    "PRESLIDING",
    "SETTLED",
    "Advice",
    "Coupling",
    "Handle",
    "PositionServo",
    "SampledArm",
    "Severity",
    "Suggestion",
    "advise",
    "advise_walls",
    "contact_eigenvalues",
    "contact_is_nonoscillatory",
    "contact_is_stable",
    "corner_factor",
    "count_jump",
    "critical_stiffness",
    "damping_limit",
    "growth",
    "hold_buzz",
    "mass_limit",
    "mass_rule",
    "settling_time",
    "sliding_mass_limit",
    "sliding_matrix",
    "smallest_force",
    "smallest_stribeck_velocity",
    "stiffness_limit",
    "stiffness_rule",
    "stuck_matrix",
    "suggest",
    "wall_limit",
]
