"""``haptics export``: a recording as a file that other programs read. The recording itself stays what it is."""
