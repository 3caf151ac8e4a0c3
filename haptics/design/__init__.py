"""Bounds, suggestions and advice for the parameters of friction elements and walls.

======================================  ==========================================================================
question                                answer
======================================  ==========================================================================
Stability of model C on a bare mass     `contact_is_stable`, `contact_is_nonoscillatory`, `critical_stiffness`
Stability of model B or C on a device   `stiffness_limit`, `damping_limit` (exact); `stiffness_rule` (rule of thumb)
Settling time of a sticking contact     `settling_time`
Stability of model A or D on an arm     `sliding_mass_limit` (exact, for an arm modelled as a `SampledArm`);
                                        `mass_limit` (exact, for a second-order servo); `mass_rule` (rule of thumb)
Effect of encoder quantisation          `count_jump`, `hold_buzz`, `smallest_force`
Unique force of a law that falls        `smallest_stribeck_velocity`
Initial parameters                      `suggest`
Check of an element on a device         `advise`
Stability of walls                      `wall_limit`, and `corner_factor` for two walls that meet (exact);
                                        `advise_walls` checks the walls of a scene
======================================  ==========================================================================

The limits are exact for the device that `Handle`, `PositionServo` or `SampledArm` describes: at the limit, an
eigenvalue of the matrix of one period leaves the unit circle. This package does not use compiled kernels.
"""

from haptics.design.advice import Advice, Severity, Suggestion, advise, advise_walls, suggest, wall_limit
from haptics.design.bounds import (
    CRITICAL_NONOSCILLATORY,
    CRITICAL_STABLE,
    MARGIN,
    PRESLIDING,
    SETTLED,
    contact_eigenvalues,
    contact_is_nonoscillatory,
    contact_is_stable,
    corner_factor,
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
from haptics.design.loops import (
    FIRM_GRIP,
    Coupling,
    Handle,
    PositionServo,
    SampledArm,
    growth,
    sliding_matrix,
    stuck_matrix,
)

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
