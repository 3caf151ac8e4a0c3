"""Serving the bus of an emulated drive to other processes.

- `packets`: what goes over the sockets. `connection`: a client with its requests. `server`: all of them, in an event
  loop (`devices.emulators.loop`).
"""
