"""Screens of the participant and the experimenter, each in a separate process.

Importing this package imports neither Qt nor pyglet.
"""

from apps.experiment.screens.launch import open_experimenter, open_participant
from apps.experiment.screens.messages import (
    KINDS,
    Abort,
    Cannot,
    Certificate,
    Choice,
    Figure,
    GoOn,
    Kind,
    Note,
    Notice,
    Outcome,
    Pacing,
    Pause,
    Progress,
    Redo,
    SessionOutline,
    Show,
    StartBox,
)
from apps.experiment.settings import ScreenSettings
from apps.opengl.plane import Corners

__all__ = [
    "KINDS",
    "Abort",
    "Cannot",
    "Certificate",
    "Choice",
    "Corners",
    "Figure",
    "GoOn",
    "Kind",
    "Note",
    "Notice",
    "Outcome",
    "Pacing",
    "Pause",
    "Progress",
    "Redo",
    "ScreenSettings",
    "SessionOutline",
    "Show",
    "StartBox",
    "open_experimenter",
    "open_participant",
]
