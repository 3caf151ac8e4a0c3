"""hAPI board on a pseudo-terminal, with a pantograph and a hand.

It is written only from the message layout and the geometry of the arms and shares no code with the driver, so that a
mistake there does not cancel out here. Like the real board it has no watchdog, keeps its torques through a reset,
waits a second for the rest of a message, and accepts any byte as the beginning of a message.

- `devices.emulators.hapi.arms`: the moving arms, and the operator who holds them at home first.
- `devices.emulators.hapi.firmware`: the board, bytes in and bytes out.
- `devices.emulators.hapi.board`: both at a pseudo-terminal, in a thread, with `faults` on demand.
- `devices.emulators.hapi.child`: the emulator in a separate process.
"""
