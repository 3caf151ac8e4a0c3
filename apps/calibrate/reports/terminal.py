"""A person at a terminal: words on standard error, answers from standard input, counts live while a hand is busy."""

from __future__ import annotations

import os
import select
import sys
import time

from apps.shared.progress import Line
from calibration.joystick.person import Look, Pair, Place, in_words
from haptics.errors import ConfigurationError

_LOOK = 0.1
"""How often the counts are shown while an answer is awaited [s]."""
_PREPARE = 0.8
"""Between the announcement of a push and the push [s]."""


def say(words: str) -> None:
    """Tell a person something."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


class Answers:
    """Lines that somebody types; they can be waited for, a little at a time."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._rest = b""

    def next(self, timeout: float) -> str | None:
        """Return the next line, None if there was none for `timeout` [s].

        Raises
        ------
        ConfigurationError
            If there will be none any more.
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
    """The person who calibrates a real stick.

    Parameters
    ----------
    yes : bool
        Do not ask what they saw.
    answers : Answers, optional
        Where their answers come from; by default standard input.
    """

    def __init__(self, yes: bool, answers: Answers | None = None) -> None:
        self._yes = yes
        self._answers = answers or Answers()

    def tell(self, words: str) -> None:
        """Say something."""
        say(words)

    def bring(self, place: Place, look: Look) -> None:
        """Ask for the handle to be brought to a place."""
        self._wait(f"Bring the handle to {place.words}, hold it there, and press Enter.", look)

    def let_go(self, look: Look) -> None:
        """Ask for the handle to be left alone."""
        self._wait("Let go of the handle, keep your hand near it, and press Enter. It will be pushed, gently.", look)

    def watch(self, words: str) -> None:
        """Announce a push."""
        say(words)
        time.sleep(_PREPARE)

    def saw(self, motion: Pair) -> bool:
        """Ask whether the handle moved that way."""
        moved = f"{1e3 * (motion[0] ** 2 + motion[1] ** 2) ** 0.5:.0f} mm {in_words(motion)}"
        if self._yes:
            say(f"By its counts the handle moved {moved}.")
            return True
        say(f"Did the handle just move about {moved}? [y/n]")
        while True:
            answer = (self._answers.next(_LOOK) or "").lower()
            if answer in {"y", "yes"}:
                return True
            if answer in {"n", "no"}:
                return False

    def hang(self, mass: float, look: Look) -> None:
        """Ask for the weight."""
        self._wait(
            f"Hang {mass:g} kg on a thread over the edge of the table, so that it pulls the handle horizontally and "
            "straight towards you. Keep clear of it, and press Enter. The stick will take it up, slowly.",
            look,
        )

    def take_off(self, mass: float, look: Look) -> None:
        """Ask for the weight to be taken off."""
        self._wait("Take the weight off, and press Enter. The stick does not carry it any more.", look)

    def _wait(self, words: str, look: Look) -> None:
        say(words)
        with Line() as line:
            while self._answers.next(_LOOK) is None:
                x, y = look()
                line.show(f"counts {x}, {y}")
