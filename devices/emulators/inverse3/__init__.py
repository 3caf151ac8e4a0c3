"""Service of an Inverse3 on a local TCP port, with handles and a hand.

It is written only from the RFC and the documented messages and shares no code with the driver, so that a mistake there
does not cancel out here. Where the real service is not documented (its damper, its gate, its command timeout), it uses
the simplest interpretation of the documentation.

- `devices.emulators.inverse3.handle`: a handle in space, and the hand that holds it.
- `devices.emulators.inverse3.filters`: force filters of the service.
- `devices.emulators.inverse3.service`: message processing, text in and text out.
- `devices.emulators.inverse3.wire`: WebSocket frames, server side.
- `devices.emulators.inverse3.server`: the service at a port, with `faults` on demand.
- `devices.emulators.inverse3.child`: the server in a separate process.
"""
