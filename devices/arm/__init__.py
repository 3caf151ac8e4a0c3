"""Admittance arm: kinematics, dynamics, elastic joints with friction, and servo laws.

- `devices.arm.device`: the device driver of the arm, built from motors, sensor and references, with its settings.
- `devices.arm.body`: model of an arm, for the simulated arm, the emulated arm and the control.
- `devices.arm.mechanics`: linkages, inertia of the links, drives with friction, and equations of motion.
- `devices.arm.flatness`: smooth friction and stiffness laws with exact derivatives, and the feed-forward based on them.
- `devices.arm.servo`: servo laws, their gains and stability, and references for a drive.
- `devices.arm.hybrid`: control of position along a surface and of force normal to it.
- `devices.arm.motors`: motor stages behind one small interface: ODrive.
- `devices.arm.sensors`: force sensors at the end effector: ATI Net F/T, OnRobot HEX, OptoForce.
"""

ODRIVES = ("1209:0d31", "1209:0d32", "1209:0d33")
"""USB identities (vendor:product) of ODrives with firmware 0.5, for the driver and for udev rules."""

OPTOFORCE = ("04d8:000a",)
"""USB identities (vendor:product) of OptoForce DAQ units."""
