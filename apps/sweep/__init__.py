"""Command ``haptics sweep``: simulate a session for each point of a design, in parallel."""
