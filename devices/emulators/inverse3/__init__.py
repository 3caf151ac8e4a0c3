"""The service of an Inverse3 on a TCP port of this machine, with handles and a hand behind it: the driver's far end.

It is written from the RFC and the documented messages alone and shares nothing with the driver, so that a mistake there
does not cancel out here. Where the real service is not documented (its damper, its gate, when it forgets a command) it
does the plainest thing that the words of its documentation allow.

- `devices.emulators.inverse3.handle`: a handle in space, and the hand that holds it.
- `devices.emulators.inverse3.filters`: what the service takes away of a force.
- `devices.emulators.inverse3.service`: its program, text in and text out.
- `devices.emulators.inverse3.wire`: WebSocket frames, server's side.
- `devices.emulators.inverse3.server`: all of it at a port, with `faults` on demand.
- `devices.emulators.inverse3.child`: the same in a process of its own.
"""
