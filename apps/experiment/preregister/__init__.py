"""Command ``haptics experiment preregister``: decisions fixed before the first participant."""
