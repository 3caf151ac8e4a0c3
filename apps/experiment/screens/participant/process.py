"""Entry point of the process of the participant's screen."""

from __future__ import annotations

import gc
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from apps.experiment.screens.messages import Cannot
from apps.experiment.screens.settings import ScreenSettings
from apps.front_ends.link import Link
from apps.opengl.opening import open_window, unavailable_message


def main(connection: Connection[Any, Any], settings: ScreenSettings) -> None:
    """Run the participant's screen until the session sends `Quit` or the pipe or the window is closed.

    If the window cannot be opened, send `Cannot` and exit with the same message.
    """
    # Ctrl-C reaches the whole process group. The session handles it and sends Quit.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = Link(connection)
    try:
        window = _open(settings)
        from apps.experiment.screens.participant.window import ParticipantWindow

        screen = ParticipantWindow(link, window, settings)
    except Exception as error:  # report any error of the graphics libraries to the session
        words = unavailable_message("the participant's screen", error)
        link.send(Cannot("window", words))
        link.close()
        sys.exit(words)
    gc.collect()
    gc.freeze()
    screen.run()
    link.close()


def _open(settings: ScreenSettings) -> Any:
    """Open the window on the configured screen, or on the last one available."""
    import pyglet

    pyglet.options.audio = ("pulse", "openal", "xaudio2", "directsound", "silent")
    size = None if settings.full_screen else (settings.width, settings.height)
    return open_window("haptics: participant", screen=settings.screen, size=size)
