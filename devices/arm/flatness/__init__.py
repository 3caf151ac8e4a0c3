"""Flatness-based control of an elastic joint (Weigand et al. 2020).

A motor turns a link through a gearbox with friction, backlash and elasticity. The link angle is a *flat output*: the
torque in the gearbox, the motor angle and the motor torque follow from it and four of its derivatives, without
integration. This requires derivatives of friction and stiffness, which every law here provides exactly.

- `laws`: smooth laws of friction and stiffness, with exact derivatives and inverses.
- `joint`: an elastic joint, its feed-forward (elastic or rigid), servo laws with feedback or exact linearisation,
  reference motions, and the simulation of the two masses of a joint under such a law.
"""
