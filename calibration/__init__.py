"""From recorded motion to parameters one can trust: friction, motor gain, coupled joints.

The room is still empty; it stands between the devices, which will read the parameter files made here, and the
applications that make them.
"""
