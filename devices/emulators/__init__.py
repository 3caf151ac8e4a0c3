"""The far end of each wire: devices that exist only as bytes, so that a real driver can be run against them.

An emulator answers as the real device does on its bus, with its faults, and has something behind it that moves. It is
written from byte layouts, the drivers are written from what the device says of itself: not the same mistake twice.

- `devices.emulators.pid`: force-feedback sticks of the USB HID PID class, behind a backend for pyusb.
- `devices.emulators.hapi`: a Haply board on a pseudo-terminal, with a pantograph.
- `devices.emulators.inverse3`: the service of a Haply Inverse3 on a TCP port, with a handle in space.
- `devices.emulators.odrive`: a motor drive with two motors, behind a backend for pyusb or in a process of its own.
- `devices.emulators.rdt`, `devices.emulators.optoforce`: force sensors, on a network and on a pseudo-terminal.
"""
