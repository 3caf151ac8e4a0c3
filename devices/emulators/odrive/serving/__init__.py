"""Access to the buses of an emulated drive for other processes.

- `packets`: messages on the sockets. `connection`: a client with its requests. `server`: all clients, in an event
  loop (`devices.emulators.loop`).
- `remote_queue`: a queue of a drive's endpoints in another process, and the connections of clients.
- `can_bus`: the CAN bus, with its faults, and its server; `can_port`: an interface in another process.
"""
