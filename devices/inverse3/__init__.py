"""The Haply Inverse3 and Minverse: force in, position out, through the service of its maker.

The device has three axes and no USB protocol that is published; its maker's service speaks to it, and speaks JSON over
a WebSocket to us (inverse SDK 3.5). Friction here lives in a plane: two of the axes are rendered, the third one is held
by a spring and a damper.

**What is guaranteed about the force.** At every end of a run, also after errors, the driver sends a force of zero and
waits for the answer. When commands stay out for the watchdog's time it does so too. A second small process, the
guardian (`devices.common.bus.guardian`), holds the connection as well: when the driver dies or is stopped, it sends the
zero over the same connection. A command holds once; the maker writes that the device "returns to idle" when no more
come, and does not say after what time. So if the machine itself stops, or the service hangs, the service and the device
alone decide how long the last force lasts. That could not be tried: all this has seen emulated devices only.

**What the service does to the force.** It passes a damper that cannot be configured, a gate against oscillation, a
damping and a scale before the motors get it. What the service says it gives is recorded beside what it was told, as the
channels ``service_force`` and ``taken_force``.

- `frames`, `handshake`, `connection`: the WebSocket (RFC 6455), by the standard library.
- `messages`: its JSON. `choosing`: which device is meant, and whether it can be used.
- `exchange`: the thread that talks to the service. `guardian`: taking the force away when that cannot.
- `settings`, `kernels`, `device`: what a person can choose, the mathematics of a tick, and the device itself.
"""
