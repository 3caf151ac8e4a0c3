"""A hAPI board on a pseudo-terminal, with a pantograph and a hand behind it: the far end of the driver's wire.

It is written from the layout of the messages and the geometry of the arms alone and shares nothing with the driver, so
that a mistake there does not cancel out here. Like the real board it has no watchdog, keeps its torques through a
reset, waits a second for the rest of a message, and takes any byte for the beginning of one.

- `devices.emulators.hapi.arms`: the moving arms, and the operator who holds them at home first.
- `devices.emulators.hapi.firmware`: the board, bytes in and bytes out.
- `devices.emulators.hapi.board`: both at a pseudo-terminal, in a thread, with `faults` on demand.
- `devices.emulators.hapi.child`: the same in a process of its own.
"""
