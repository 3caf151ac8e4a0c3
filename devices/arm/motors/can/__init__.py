"""ODrive on a CAN bus: CAN Simple, from firmware 0.5 to Pro and S1, over Linux's SocketCAN.

- `codec`: frames as bytes. `port`: the interface, with the standard library's sockets. `line`: frames received from
  both axes, by a separate thread, and requests. `generations`: differences between 0.5 and Pro/S1.
- `checks`: requirements before a motor may move; arming and disarming. `rounds`: commands out, positions and speeds in,
  in every tick. `stage`: these parts as two motors.
"""
