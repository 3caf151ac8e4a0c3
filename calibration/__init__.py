"""From motion to parameters one can trust. So far: force-feedback sticks (`calibration.joystick`).

It stands between the devices, which read the parameter files made here, and the applications that make them.
"""
