"""Device friction in a session: from a file, or measured before the first block and compared."""
