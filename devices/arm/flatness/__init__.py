"""Flatness-based control of an elastic joint (Weigand et al. 2020).

A motor turns a link through a gearbox with friction, backlash and elasticity. The link angle is a *flat output*: the
torque in the gearbox, the motor angle and the motor torque follow from it and four of its derivatives, without
integration. This requires derivatives of friction and stiffness, which every law here provides exactly.

- `friction`: smooth friction laws. `stiffness`: lost motion, backlash and stiffness, with their exact inverses.
- `joint`: an elastic joint and its feed-forward, elastic or rigid.
- `control`: servo laws: feed-forward and feedback, exact linearisation.
- `reference`: motions with four derivatives: point to point, lemniscate.
- `simulation`: the two masses of a joint under such a servo law.
- `law_kernels`, `stiffness_kernels`, `joint_kernels`, `control_kernels`, `plant_kernels`: numerical kernels of a tick.
"""
