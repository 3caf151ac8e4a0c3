"""Tests of the emulators: each against what it emulates, and against the physics behind it."""
