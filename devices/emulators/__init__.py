"""Emulators of devices, against which the real drivers can be run.

An emulator replies like the real device on its bus, including its faults, and simulates a moving plant. Emulators are
written from byte layouts, while drivers use the descriptions that a device sends of itself, so that a mistake does not
occur on both sides.

- `devices.emulators.pid`: force-feedback sticks of the USB HID PID class, behind a backend for pyusb.
- `devices.emulators.hapi`: a Haply board on a pseudo-terminal, with a pantograph.
- `devices.emulators.inverse3`: the service of a Haply Inverse3 on a TCP port, with a handle in space.
- `devices.emulators.forcedimension`: a Force Dimension device behind a library with the symbols of its maker.
- `devices.emulators.touch`: a Touch behind a library with the symbols of its maker (`devices.emulators.native`).
- `devices.emulators.odrive`: a motor drive with two motors, behind a backend for pyusb or in a separate process.
- `devices.emulators.rdt`, `devices.emulators.optoforce`: force sensors, on a network and on a pseudo-terminal.
- `devices.emulators.arm`: drive and force sensor of one arm, moved by the motors and held by a hand.

They share `native` (makers' libraries in C and their devices), `usb_bus` (devices, clocks and backend of an emulated
USB bus), `loop` (event loop and server threads), `child` (emulators in separate processes), `handle` (the moving
handle), `sensor` (stream of a force sensor) and `wire_faults` (faults on demand).
"""
