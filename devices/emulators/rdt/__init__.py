"""Network force sensor, at a real UDP socket and a real local web server.

It is written only from the layout of commands, records and pages and shares no code with the driver, so that a mistake
there does not cancel out here. Like the real sensors it streams to the client that started it until it gets another
command, and its default rate is 7000 records per second.

- `devices.emulators.rdt.program`: firmware of the sensor, commands in and datagrams out, with faults on demand.
- `devices.emulators.rdt.box`: the sensor at its socket, and its web `pages`.
"""
