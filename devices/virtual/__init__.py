"""Virtual devices: a joystick and an arm that exist only as equations, and the hands that hold them.

The loop is closed. What the servo commands moves the handle, the handle pulls on the hand, and the hand, which wants
to be elsewhere, pulls back; friction can therefore stick, slip, buzz or drift here as it does on a bench.

- `devices.virtual.joystick`, `devices.virtual.arm`: the two plants; `joystick_kernels` and `arm_kernels` have their
  ticks, `wrench` the arm's force sensor.
- `devices.virtual.hands`: the hands by name (`registry`); `minimum_jerk`, `recorded`, `scripted`, `mouse` hold one
  each, and `kernels` what each does at a time.
- `devices.virtual.hands.presses`: the device's buttons that a hand presses, and when.
- `devices.virtual.device`: what the plants share: clock, opening and closing, the port, the log.
- `devices.virtual.plant`: the kernels they share: time, grip, encoder, the parts of a port. `noise`: random numbers for
  kernels.
"""
