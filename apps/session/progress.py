"""Progress and report of a run on the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from apps.shared.display import certificate, durations, microseconds, verdict
from apps.shared.terminal import Line, wrapped
from haptics.trace import Ring

_EVERY, _PREPARATION_EVERY = 0.2, 0.5
"""Intervals between updates during a run, and before it [s]."""

_COLUMN = 18
_PLAIN = str.maketrans({"\u00a0": " ", "\u2009": "", "µ": "u"})
"""Replacements for terminals that support ASCII only."""


class Progress:
    """Progress line of a run: compilation of kernels and opening of the device, then time and state of the contact.

    Parameters
    ----------
    device : str
        Name of the device.
    duration : float or None
        Planned duration of the run [s].
    notify : callable
        Receives lines for the user that are printed once.
    show : callable
        Receives the present activity before the first tick; empty when the preparation is complete.
    quiet : bool
        Whether nothing is written to the terminal, for runs whose progress is shown elsewhere.
    """

    def __init__(
        self,
        device: str,
        duration: float | None,
        notify: Callable[[str], None],
        show: Callable[[str], None],
        quiet: bool = False,
    ) -> None:
        self._device, self._duration, self._notify, self._show, self._quiet = device, duration, notify, show, quiet
        self._line, self._preparing = Line(), "preparing"
        self._began = time.monotonic()
        self._next = self._next_preparation = 0.0
        self._kernels: tuple[int, int] | None = None
        self._opening = False

    def handle_message(self, stage: str, facts: Any) -> None:
        """Handle a progress message of the servo: ``compiling``, ``compiled``, ``opening`` or ``ready``."""
        if stage == "ready":
            self._next_preparation = float("inf")
            self._show("")
            return
        if stage == "compiling":
            if self._kernels is None:
                self._line.clear()
                self._notify("compiling kernels, which takes a minute or two; the next run reuses them")
            self._kernels = facts
        elif stage == "opening":
            self._opening = True
        self._next_preparation = 0.0
        self.show_preparation()

    def show_preparation(self) -> None:
        """Show the present activity before the first tick, at most twice per second."""
        now = time.monotonic()
        if now < self._next_preparation:
            return
        self._next_preparation = now + _PREPARATION_EVERY
        words, seconds = "", now - self._began
        if self._opening:
            words = f"opening {self._device} ({seconds:.0f} s)"
        elif self._kernels is not None:
            number, about = self._kernels
            words = f"compiling kernel {number} of about {about} ({seconds:.0f} s; only the first time)"
        if words:
            self._preparing = words
            if not self._quiet:
                self._line.show(words)
            self._show(words)

    def show_run(self, trace: Ring) -> None:
        """Show the progress of the run, at most five times per second."""
        now = time.monotonic()
        if now < self._next or self._quiet:
            return
        self._next = now + _EVERY
        newest = trace.since(trace.count - 1)
        if not len(newest):
            self._line.show(self._preparing)
            return
        row, duration = newest[-1], self._duration
        done = f"{row['time']:.1f} s" + (f" of {duration:g} s" if duration else " (Ctrl-C ends the run)")
        friction, state = float(np.hypot(*row["friction_force"])), "sticking" if row["sticking"] else "slipping"
        self._line.show(f"{done}   friction {friction:5.2f} N   {state}")

    def clear(self) -> None:
        """Remove the line."""
        self._line.clear()


def describe(summary: dict[str, Any]) -> str:
    """Return the report of a run, advice last; `summary` has the keys of the JSON output."""
    lines = []
    found = verdict(summary)
    if found is not None:
        lines += [("verdict", found.word), *(("because", reason) for reason in found.reasons)]
    lines += [
        ("recording", str(summary["recording"])),
        ("picture", str(summary["picture"] or "none")),
        *certificate({name: value for name, value in summary.items() if name != "rate_hz"}),
    ]
    for name, values in durations(summary).items():
        lines.append((name, ", ".join(f"{word} {microseconds(value)}" for word, value in values.items())))
    lines += [("advice", sentence) for sentence in summary.get("advice", ())]
    head = f"{summary['device']}, model {summary['model']}, {summary['rate_hz']:g} Hz: {summary['reason']}"
    body = "\n".join(f"  {name:<{_COLUMN}}{value}".translate(_PLAIN) for name, value in lines)
    return wrapped(f"{head}\n{body}", indent=2 + _COLUMN)
