"""Front ends of a session: messages, pipes, and run data shared by all windows."""
