"""Identification: from recorded motion to parameters, with intervals that say how far to trust them.

It stands between the devices, which read the parameter files made here, and the applications that make them.

- `calibration.data.measurements`: what was measured of a joint, from CSV, NPZ and recordings.
- `calibration.data.signals`: velocities and accelerations without lag.
- `calibration.fitting.regression`, `intervals`: least squares, and how far off a result may be.
- `calibration.friction`: friction laws from motion, and the choice between them.
- `calibration.identification`: from a measurement to the friction of a joint.
- `calibration.motor.gain`, `coupled`: what motors give, and joints that several of them drive together.
- `calibration.terms.terms`, `selection`: friction and load from a library of terms, chosen by what they predict.
- `calibration.parameters.parameters`, `parameter_files`: the result, and its file.
- `calibration.joystick`: counts and levels of a force-feedback stick.
"""
