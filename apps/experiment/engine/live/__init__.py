"""Live sessions: the servo in a separate process and a participant at the screens, in real time."""
