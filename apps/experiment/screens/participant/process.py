"""Entry of the process that shows the participant's screen."""

from __future__ import annotations

import gc
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from apps.experiment.screens.messages import Cannot
from apps.experiment.screens.settings import ScreenSettings
from apps.front_ends.link import Link
from apps.opengl.opening import open_window, why


def main(connection: Connection[Any, Any], settings: ScreenSettings) -> None:
    """Show the participant's screen until the session says `Quit`, the pipe ends or a person closes the window.

    Where no window can be opened it says `Cannot`, and the process ends with the same words.
    """
    # Ctrl-C in the terminal reaches the whole group; the session decides what it means and says Quit.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = Link(connection)
    try:
        window = _open(settings)
        from apps.experiment.screens.participant.window import ParticipantWindow

        screen = ParticipantWindow(link, window, settings)
    except Exception as error:  # whatever the graphics libraries raise: the session must hear of it, in words
        words = why("the participant's screen", error)
        link.send(Cannot("window", words))
        link.close()
        sys.exit(words)
    gc.collect()
    gc.freeze()
    screen.run()
    link.close()


def _open(settings: ScreenSettings) -> Any:
    """Open the window on the screen that was asked for, or on the last one there is."""
    import pyglet

    pyglet.options.audio = ("pulse", "openal", "xaudio2", "directsound", "silent")
    size = None if settings.full_screen else (settings.width, settings.height)
    return open_window("haptics: participant", screen=settings.screen, size=size)
