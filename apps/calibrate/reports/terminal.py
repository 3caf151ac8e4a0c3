"""Dialogue with the user at a terminal, with live encoder counts while an answer is awaited."""

from __future__ import annotations

import os
import select
import sys
import time

from apps.shared.progress import Line
from calibration.joystick.person import Look, Pair, Place, in_words
from haptics.errors import ConfigurationError

_LOOK = 0.1
"""Polling period of the answer and update period of the counts [s]."""
_PREPARE = 0.8
"""Delay between the announcement of a push and the push [s]."""


def print_message(words: str) -> None:
    """Write a message to standard error."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


class TerminalInput:
    """Lines read from a file descriptor with a timeout."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._rest = b""

    def next(self, timeout: float) -> str | None:
        """Return the next line, or None if none arrived within `timeout` [s].

        Raises
        ------
        ConfigurationError
            If the input is closed.
        """
        if b"\n" not in self._rest:
            if not select.select([self._descriptor], [], [], timeout)[0]:
                return None
            data = os.read(self._descriptor, 4096)
            if not data:
                raise ConfigurationError(
                    "standard input is closed, but this calibration asks questions: run it in a terminal."
                )
            self._rest += data
        line, newline, rest = self._rest.partition(b"\n")
        if not newline:
            return None
        self._rest = rest
        return line.decode(errors="replace").strip()


class TerminalPerson:
    """User interface of the calibration of a real stick.

    Parameters
    ----------
    yes : bool
        Skip the question whether the handle moved as measured.
    answers : Answers, optional
        Source of the answers. Default: standard input.
    """

    def __init__(self, yes: bool, answers: TerminalInput | None = None) -> None:
        self._yes = yes
        self._answers = answers or TerminalInput()

    def show_message(self, words: str) -> None:
        """Print a message."""
        print_message(words)

    def bring(self, place: Place, look: Look) -> None:
        """Ask the user to hold the handle at a given position, and wait."""
        self._wait(f"Bring the handle to {place.words}, hold it there, and press Enter.", look)

    def release_handle(self, look: Look) -> None:
        """Ask the user to release the handle, and wait."""
        self._wait("Let go of the handle, keep your hand near it, and press Enter. It will be pushed, gently.", look)

    def watch(self, words: str) -> None:
        """Announce a push and wait briefly."""
        print_message(words)
        time.sleep(_PREPARE)

    def saw(self, motion: Pair) -> bool:
        """Ask the user whether the handle moved by `motion` [m]."""
        moved = f"{1e3 * (motion[0] ** 2 + motion[1] ** 2) ** 0.5:.0f} mm {in_words(motion)}"
        if self._yes:
            print_message(f"By its counts the handle moved {moved}.")
            return True
        print_message(f"Did the handle just move about {moved}? [y/n]")
        while True:
            answer = (self._answers.next(_LOOK) or "").lower()
            if answer in {"y", "yes"}:
                return True
            if answer in {"n", "no"}:
                return False

    def hang(self, mass: float, look: Look) -> None:
        """Ask the user to attach a weight of `mass` [kg], and wait."""
        self._wait(
            f"Hang {mass:g} kg on a thread over the edge of the table, so that it pulls the handle horizontally and "
            "straight towards you. Keep clear of it, and press Enter. The stick will take it up, slowly.",
            look,
        )

    def take_off(self, mass: float, look: Look) -> None:
        """Ask the user to remove the weight, and wait."""
        self._wait("Take the weight off, and press Enter. The stick does not carry it any more.", look)

    def _wait(self, words: str, look: Look) -> None:
        print_message(words)
        with Line() as line:
            while self._answers.next(_LOOK) is None:
                x, y = look()
                line.show(f"counts {x}, {y}")
