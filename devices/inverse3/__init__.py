"""Haply Inverse3 and Minverse through the manufacturer's service: forces in, positions out.

The device has three axes and no published USB protocol. The manufacturer's service communicates with it and offers JSON
over a WebSocket (inverse SDK 3.5). Friction is rendered in a plane, on two of the axes; a spring and a damper hold the
third axis.

**Guarantees about the force.** At every end of a run, also after errors, the driver sends a zero force and waits for
the answer. It does so too when no command arrives within the watchdog's time. A second small process, the guardian
(`devices.common.guardian`), also holds the connection: when the driver dies or is stopped, the guardian sends the
zero force over the same connection. Each command holds once; the manufacturer writes that the device "returns to idle"
without further commands, and does not state the delay. If the computer itself stops, or the service hangs, only the
service and the device determine how long the last force lasts. This could not be tested: the driver has run with
emulated devices only.

**Processing of the force by the service.** Before the force reaches the motors, the service applies a damper that
cannot be configured, a gate against oscillation, a damping and a scale. The force that the service reports is recorded
together with the commanded one, as the channels ``service_force`` and ``taken_force``.

- `websocket`: WebSocket (RFC 6455), implemented with the standard library. `service`: JSON messages.
- `exchange`: selection of the device, and the exchange of forces for states (`devices.common.exchange`).
- `guardian`: zero force when the driver has failed.
- `kernels`, `device`: computation per tick; settings and the device driver.
"""
