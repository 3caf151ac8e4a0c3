"""Screens of the participant and the experimenter, each in a separate process.

Only the modules of the windows import Qt or pyglet: `participant`, `drawing`, `panels` and `experimenter`.
"""
