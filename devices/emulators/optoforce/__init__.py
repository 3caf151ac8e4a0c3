"""An OptoForce sensor with its DAQ unit at a pseudo-terminal: the far end of the driver's wire.

It is written from the layout of the bytes alone and shares nothing with the driver.

- `devices.emulators.optoforce.program`: the unit, bytes in and bytes out, with faults on demand.
- `devices.emulators.optoforce.port`: the same at a pseudo-terminal.
"""
