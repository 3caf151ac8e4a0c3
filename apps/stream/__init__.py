"""``haptics run --stream``: send every tick of a run to other programs, from a separate process."""
