"""Tests of the emulators against their originals and against physics."""
