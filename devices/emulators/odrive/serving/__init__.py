"""Serving the buses of an emulated drive to other processes.

- `packets`: what goes over the sockets. `connection`: a client with its requests. `server`: all of them, in an event
  loop (`devices.emulators.loop`).
- `remote_queue`: a queue of a drive's endpoints in another process, and the connections of clients.
- `can_bus`: the CAN bus, with its faults, and what serves that; `can_port`: an interface in another process.
"""
