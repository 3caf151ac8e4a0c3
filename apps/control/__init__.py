"""``haptics run --control``: control of a session by other programs, with JSON messages over a WebSocket.

`verbs` defines the messages, `server` serves them, and ``page.html`` is the page that a browser gets from the server.
"""
