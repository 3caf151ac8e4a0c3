"""Force sensors of the arm, which provide the hand's force [N] and its age.

- `force_sensor`: interface of every sensor to the arm: the newest wrench, its age and whether it is valid; mounting on
  the arm, and tare.
- `rdt`: network sensors with raw data transfer: ATI Net F/T and Axia, OnRobot HEX.
- `optoforce`: OptoForce sensors on USB.

Sensors by name are in `devices.arm.device`. A sensor has no safe state. Instead, an old or invalid force must never
be used as a new one: every measurement carries its time of reception, and a measurement that the sensor marks as
invalid is not used.
"""
