"""Virtual devices: a simulated joystick and a simulated arm, and the simulated hands that hold them.

The loop is closed. The command of the servo moves the handle, the handle pulls on the hand, and the hand pulls back
towards its own target. Friction can therefore stick, slip, buzz or drift as on real hardware.

- `devices.virtual.joystick`, `devices.virtual.arm`: the two plants; `joystick_kernels` and `arm_kernels` compute their
  ticks, and `wrench` simulates the force sensor of the arm.
- `devices.virtual.hands`: the hands by name (`registry`); `minimum_jerk`, `recorded`, `scripted` and `mouse` define one
  each, and `kernels` computes their samples.
- `devices.virtual.hands.presses`: the buttons that a hand presses, with times.
- `devices.virtual.device`: base class of the plants: clock, opening and closing, port, log.
- `devices.virtual.plant`: shared kernels: time, grip, encoder, parts of the port. `noise`: random numbers for kernels.
"""
