"""Virtual devices: a simulated joystick and a simulated arm, and the simulated hands that hold them.

The loop is closed. The command of the servo moves the handle, the handle pulls on the hand, and the hand pulls back
towards its own target. Friction can therefore stick, slip, buzz or drift as on real hardware.

- `devices.virtual.joystick`, `devices.virtual.arm`: the two plants; `wrench` simulates the force sensor of the arm.
- `devices.virtual.device`: base class of the plants and their shared kernels: clock, grip, encoder, port, log.
- `devices.virtual.hands`: the hands by name (`registry`); `minimum_jerk`, `recorded`, `scripted` and `mouse` define one
  each, `kernels` computes their samples, and `hand` has their base classes, button presses and tremor.
- `noise`: random numbers for kernels.
"""
