"""Tests of the emulators against their specifications and against physics."""
