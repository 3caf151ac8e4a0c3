"""``haptics experiment preregister``: what an experiment fixes before its first participant."""
