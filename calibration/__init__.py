"""Identification of parameters from recorded motion, with confidence intervals.

The package connects the devices, which read the parameter files, with the applications that write them.

- `calibration.data`: recordings of joints from files; velocities and accelerations without phase lag.
- `calibration.fitting`: least squares and the uncertainty of its results.
- `calibration.friction`: friction laws from motion, and model selection.
- `calibration.identification`: friction of a joint from a recording.
- `calibration.motor`, `coupled`: motor gains, and joints driven by several motors together.
- `calibration.terms`: friction and load from a library of terms, selected by prediction error.
- `calibration.parameters`: identified parameters and their file.
- `calibration.joystick`: counts and levels of a force-feedback stick.
- `calibration.psychometric`: thresholds, Weber fractions and d' from the responses of participants.
- `calibration.motions`: motions of a device that identify its friction and mass.
"""

from haptics.lazy import public_names

__all__, __getattr__, __dir__ = public_names(__name__, __file__)
