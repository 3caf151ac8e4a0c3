"""``haptics pack``: recordings take less room, and are read as they are."""
