"""Processes of the two screens."""

from __future__ import annotations

import gc
import signal
import sys
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from apps.experiment.screens.messages import Cannot
from apps.experiment.settings import ScreenSettings

if TYPE_CHECKING:
    from apps.front_ends.front_end import ProcessFrontEnd

EXPERIMENTER = "apps.experiment.screens.experimenter:ExperimenterWindow"
"""Class of the experimenter's window."""


def open_participant(settings: ScreenSettings) -> ProcessFrontEnd:
    """Open the participant's screen.

    A failure is reported by `messages.Cannot` (`ProcessFrontEnd.open`).
    """
    from apps.front_ends.front_end import ProcessFrontEnd

    return ProcessFrontEnd(main, (settings,), name="haptics participant")


def open_experimenter() -> ProcessFrontEnd:
    """Open the experimenter's screen.

    Use `apps.view.launch.window_obstacle` to check first whether Qt can show a window.
    """
    from apps.front_ends.front_end import ProcessFrontEnd
    from apps.view.launch import main as main_of_qt

    return ProcessFrontEnd(main_of_qt, ("auto", EXPERIMENTER), name="haptics experimenter", holds_key=False)


def main(connection: Connection[Any, Any], settings: ScreenSettings) -> None:
    """Run the participant's screen until the session sends `Quit` or the pipe or the window is closed.

    If the window cannot be opened on the configured screen or the last one available, send `Cannot` and exit with the
    same message.
    """
    from apps.front_ends.front_end import Link
    from apps.opengl.window import open_window, unavailable_message

    # Ctrl-C reaches the whole process group. The session handles it and sends Quit.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = Link(connection)
    try:
        import pyglet

        pyglet.options.audio = ("pulse", "openal", "xaudio2", "directsound", "silent")
        size = None if settings.full_screen else (settings.width, settings.height)
        window = open_window("haptics: participant", screen=settings.screen, size=size)
        from apps.experiment.screens.participant import ParticipantWindow

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
