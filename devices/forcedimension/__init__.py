"""Driver of the Force Dimension omega, delta, sigma and lambda through the maker's library, used in a plane.

The library (``libdrd``, which contains ``libdhd``) is closed; the user installs the Force Dimension SDK, and the driver
loads it with ctypes. A thread exchanges forces for positions, as in all drivers of this kind
(`devices.common.exchange`). Calls of the library block for a USB transfer and never happen in a tick.

Guarantees about the force:

- Every result of a call that sets or reads force and position is checked. A failed call ends the run. A position that
  could not be read is not used.
- At every end of a run, the driver sends a force of zero, switches the forces off and applies the brakes of the motors.
  It checks that the library confirms this.
- If the driver dies or is stopped, the device itself switches its forces off after ``device.hardware_watchdog``
  (at most 31.9 ms). A second process cannot do so, because the maker's library gives a device to one process only.
- If the device switches its forces off (its button, velocity threshold, watchdog, a broken connection), the run ends
  and states the cause.

Sources: the maker's prototypes (headers of SDK 3.2 and 3.6), the documentation of forcedimension_core-python (SDK 3.14
to 3.16), CHAI3D, ICube-Robotics/forcedimension_ros2, ricmua/ros_force_dimension. Nothing was tried on hardware.
"""
