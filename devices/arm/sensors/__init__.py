"""Force sensors of the arm: whatever the wire speaks, out comes the hand's force in newtons, with its age.

- `devices.arm.sensors.force_sensor`: what every sensor is to the arm: the newest wrench, how old it is and whether it
  can be trusted; tare and zero.
- `devices.arm.sensors.mounting`: how a sensor sits on the arm and what handle it carries.
- `devices.arm.sensors.choosing`: sensors by name.
- `devices.arm.sensors.ati`, `onrobot`: sensors on the network, ATI Net F/T and Axia, OnRobot HEX. `rdt` is what they
  have in common, `rdt_records` understands their records, `rdt_status` their status, `rdt_web` the pages of ATI.
- `devices.arm.sensors.optoforce`: OptoForce sensors on USB; `optoforce_frames` finds frames in the bytes.
- `devices.arm.sensors.wire`: what a further kind of sensor must be able to do.

A sensor has no safe state of its own to go to. What matters is that nobody takes an old or a wrong force for a new
one: every measurement carries the time at which it came, and one that the sensor itself does not trust is none.
"""
