"""``haptics compare``: what two recordings have in common, and from which tick on they differ."""
