"""An ODrive on a CAN bus: CAN Simple, from firmware 0.5 to Pro and S1, over Linux's SocketCAN.

- `codec`: frames as bytes. `port`: the interface, by the standard library's sockets. `line`: what was heard of both
  axes, by a thread that does nothing else, and requests. `generations`: what differs between 0.5 and Pro/S1.
- `checks`: what must be true before a motor may move, and how it is brought to move and to rest. `rounds`: commands
  out, positions and speeds in, in every tick. `stage`: all of it as two motors.
"""
