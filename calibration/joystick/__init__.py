"""Calibrating a force-feedback stick: what its counts are in metres and its levels in newtons.

A person moves the handle, watches it and says what happened; the program watches counts. Nothing is assumed about how
the axes of the stick lie in the plane in which its handle moves, nor about how its motors pull.

- `calibration.joystick.person`: what a person is asked to do.
- `calibration.joystick.request`: what is known beforehand.
- `calibration.joystick.stick`: the stick in its own units.
- `calibration.joystick.looking`, `axes`: from places of the handle to metres per count.
- `calibration.joystick.pushes`, `response`: small pushes, and what the motions that follow tell of the motors.
- `calibration.joystick.release`: how long a force lasts that nobody renews.
- `calibration.joystick.balance`: the scale, by a weight that the stick carries.
- `calibration.joystick.procedure`: all of it in order, up to the parameters.
- `calibration.joystick.emulated`: a person for emulated sticks.
"""
