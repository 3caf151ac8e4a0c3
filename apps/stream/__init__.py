"""``haptics run --stream``: every tick of a run to other programs, by UDP or WebSocket, from a process of its own."""
