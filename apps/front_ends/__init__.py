"""Front ends: what shows a session to a person, and the messages between the two."""
