"""OptoForce sensor with its DAQ unit at a pseudo-terminal: the far end of the driver's communication.

It is written only from the byte layout and shares no code with the driver.

- `devices.emulators.optoforce.program`: firmware of the unit, bytes in and bytes out, with faults on demand.
- `devices.emulators.optoforce.port`: the unit at a pseudo-terminal.
"""
