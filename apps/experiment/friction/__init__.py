"""The device's own friction in a session: known from a file, or measured anew before the first block, and compared."""
