"""Bounds, suggestions and advice for the parameters of friction elements and walls.

======================================  ==========================================================================
question                                answer
======================================  ==========================================================================
Stability of model C on a bare mass     `contact_is_stable`
Stability of model B or C on a device   `stiffness_limit`, `damping_limit` (exact); `stiffness_rule` (rule of thumb)
Settling time of a sticking contact     `settling_time`
Stability of model A or D on an arm     `sliding_mass_limit` (exact, for an arm modelled as a `SampledArm`);
                                        `mass_limit` (exact, for a second-order servo)
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

from haptics.lazy import public_names

__all__, __getattr__, __dir__ = public_names(__name__, __file__)
