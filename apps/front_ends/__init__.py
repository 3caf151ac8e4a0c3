"""Front ends: what shows a session to a person, the messages between the two, and what all windows share."""
