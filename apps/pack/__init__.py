"""``haptics pack``: lossless compression of recordings."""
