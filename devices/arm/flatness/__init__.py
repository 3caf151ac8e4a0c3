"""Flatness-based control of an elastic joint (Weigand et al. 2020): the motor torque that makes a link follow.

A motor turns a link through a gearbox with friction, backlash and elasticity. The link angle is a *flat output*: from
it and four of its derivatives follow, without integration, the torque in the gearbox, the motor angle and the motor
torque. All that needs derivatives of the friction and of the stiffness; every law here gives its own, exactly.

- `friction`: smooth friction laws. `stiffness`: lost motion, backlash and stiffness, with their exact inverses.
- `joint`: an elastic joint and its feed-forward, elastic or rigid.
- `control`: the servo laws around it: feed-forward and feedback, exact linearisation.
- `reference`: motions with four derivatives: point to point, lemniscate.
- `simulation`: the two masses of a joint under such a servo law.
- `law_kernels`, `stiffness_kernels`, `joint_kernels`, `control_kernels`, `plant_kernels`: the mathematics of a tick.
"""
