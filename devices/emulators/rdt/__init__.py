"""A force sensor on the network, at a real UDP socket and a real web server of this machine.

It is written from the layout of commands, records and pages alone and shares nothing with the driver, so that a mistake
there does not cancel out here. Like the real ones it streams to whoever started it, until it is told anything else, and
its first setting is 7000 records a second.

- `devices.emulators.rdt.program`: the sensor, commands in and datagrams out, with faults on demand.
- `devices.emulators.rdt.box`: the same at its socket, and its web `pages`.
"""
