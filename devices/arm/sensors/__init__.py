"""Force sensors of the arm, which provide the hand's force [N] and its age.

- `devices.arm.sensors.force_sensor`: interface of every sensor to the arm: the newest wrench, its age and whether it is
  valid; tare and zero.
- `devices.arm.sensors.mounting`: orientation of a sensor on the arm and the handle that it carries.
- `devices.arm.sensors.choosing`: sensors by name.
- `devices.arm.sensors.ati`, `onrobot`: network sensors, ATI Net F/T and Axia, OnRobot HEX. `rdt` is their common
  protocol, `rdt_records` decodes records, `rdt_status` the status word, `rdt_web` accesses the web pages of ATI.
- `devices.arm.sensors.optoforce`: OptoForce sensors on USB; `optoforce_frames` decodes their frames.
- `devices.arm.sensors.wire`: interface of a kind of sensor.

A sensor has no safe state. Instead, an old or invalid force must never be used as a new one: every measurement carries
its time of reception, and a measurement that the sensor marks as invalid is not used.
"""
