"""Data types of a demonstration, and its runs: one session in the window if available, all others without a clock.

The module of a demonstration has a ``TITLE``, a ``GUIDE`` and ``demonstrate(showing) -> Outcome``, and is listed in
`apps.gallery.command`.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from apps.front_ends.front_end import FrontEnd
from apps.reproduce.outcome import Row
from apps.session.application import HEADLESS, Application
from apps.session.run import record_offline
from apps.settings.config import complete
from apps.settings.models import Table
from apps.shared.terminal import print_status
from devices import create_device
from haptics.recording.recording import Recording
from haptics.servo.offline import run_offline
from haptics.servo.servo import EndReason

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from haptics.elements.models import Element
    from haptics.records import Rows


@dataclass(frozen=True)
class Guide:
    """Instructions for the visitor.

    Attributes
    ----------
    do, feel, see : str
        Action, expected sensation, and contents of the picture; one or two sentences each.
    """

    do: str
    feel: str
    see: str


@dataclass(frozen=True)
class Scene:
    """One run in a film.

    Attributes
    ----------
    title : str
        Title above the run.
    rows : structured array
        Recorded ticks of the run.
    """

    title: str
    rows: Rows


@dataclass(frozen=True)
class Outcome:
    """Result of a demonstration.

    Attributes
    ----------
    number, bound : float
        Measured number and its largest permitted value, in `unit`.
    unit : str
        Unit of both.
    sentence : str
        Sentence that introduces the number.
    rows : sequence of Row
        Further checks, each with its source. Guards must hold as well.
    draw : callable
        Function that draws the picture into an empty Matplotlib figure (12 x 7 inches, constrained layout). It may
        change size and layout.
    film : sequence of Scene
        One or two runs of equal length, shown next to each other.
    facts : dict
        Additional entries of the JSON object.
    """

    number: float
    bound: float
    unit: str
    sentence: str
    rows: Sequence[Row]
    draw: Callable[[Figure], None]
    film: Sequence[Scene]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether the number is within its bound and all further checks hold."""
        return math.isfinite(self.number) and self.number <= self.bound and all(row.holds for row in self.rows)


# --- runs -------------------------------------------------------------------------------------------------------------

Tables = dict[str, Table]


@dataclass
class Showing:
    """The runs of one demonstration.

    Attributes
    ----------
    name : str
        Name of the demonstration.
    folder : Path
        Parent folder of its recordings, which have a folder each.
    caption : str
        Text in the window.
    brief : bool
        Whether to make shorter runs, for quick tests.
    windows, streams : sequence of callables
        See `apps.session.application.Application`. Without a window, all sessions run without a clock.
    obstacle : str
        Reason why there is no window.
    repeats : bool
        Whether the session in the window is repeated until the visitor stops it or leaves.
    notify : callable
        Function that prints a line for the visitor.
    recordings : list of Recording
        Recordings, starting with the session that was shown.
    """

    name: str
    folder: Path
    caption: str = ""
    brief: bool = False
    windows: Sequence[Callable[[], FrontEnd]] = ()
    streams: Sequence[Callable[[], FrontEnd]] = ()
    obstacle: str = HEADLESS
    repeats: bool = False
    notify: Callable[[str], None] = print_status
    recordings: list[Recording] = field(default_factory=list)

    def show(self, tables: Tables) -> Recording:
        """Run the session to be shown, in the window if available, and return its recording.

        If the computer was too busy and skipped ticks, or the visitor stopped the run or moved sliders, the motion
        differs from the specified one. The same session is then run without a clock, and that recording is returned.

        Parameters
        ----------
        tables : dict
            Settings, see `apps.settings.config`. Clock and recording are set here.

        Returns
        -------
        Recording
            The recording to evaluate.

        Raises
        ------
        HapticError
            The fault that ended the session.
        KeyboardInterrupt
            If the session was interrupted.
        """
        if not self.windows and not self.streams:
            return self.record_offline(tables, "shown")
        session = {**tables["session"], "record": str(self.folder), "picture": False}
        again = bool(self.repeats and self.windows)
        with tempfile.TemporaryDirectory(prefix="haptics-demo-") as folder:
            outcome = Application(
                {**tables, "session": session},
                windows=self.windows,
                streams=self.streams,
                obstacle=self.obstacle,
                notify=self.notify,
                caption=f"{self.caption} It is repeated until you stop it." if again else self.caption,
                again=folder if again else "",
            ).run()
        if outcome.fault is not None:
            raise outcome.fault
        if outcome.reason == "interrupted":
            raise KeyboardInterrupt
        shown, skipped = self.add_recording(Recording(Path(outcome.summary["recording"]))), outcome.summary["skipped"]
        if outcome.summary["reason"] != EndReason.COMPLETED:
            other = "what was shown was stopped"
        elif len(shown.settings) > 1:
            other = "what was shown was changed on the way"
        elif skipped:
            other = f"this machine skipped {skipped} ticks of what was shown"
        else:
            return shown
        self.notify(f"{other}: it is measured in the same run without a clock.")
        return self.record_offline(tables, "again")

    def record_offline(self, tables: Tables, words: str) -> Recording:
        """Run and record a session without a clock.

        `words` are appended to the name of its folder.
        """
        session = {**tables["session"], "clock": "off"}
        config = complete({**tables, "session": session})
        return self.add_recording(record_offline(config, self.folder / f"{self.name}_{words}"))

    def add_recording(self, recording: Recording) -> Recording:
        """Add a recording to the demonstration and return it."""
        self.recordings.append(recording)
        return recording


_EVERY = 0.02
"""Sampling period of a path [s]."""


def write_path(file: Path, knots: NDArray[np.float64], begin: float) -> str:
    """Write a motion along x with speeds interpolated at `knots`, and return the file name.

    Parameters
    ----------
    file : Path
        File to write.
    knots : (m, 2) array
        Time [s] and speed [m/s].
    begin : float
        Initial position [m].
    """
    times = np.arange(0.0, knots[-1, 0] + 0.5 * _EVERY, _EVERY)
    speed = np.interp(times, knots[:, 0], knots[:, 1])
    places = begin + np.concatenate(([0.0], np.cumsum(0.5 * _EVERY * (speed[1:] + speed[:-1]))))
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{t:.6f},{place:.9f},0\n" for t, place in zip(times, places, strict=True)]
    file.write_text("t,x,y\n" + "".join(lines), encoding="utf-8")
    return str(file)


def derived(quantity: str, found: float, tolerance: float = 0.0, expected: float = 1.0, unit: str = "") -> Row:
    """Return the comparison of a number with its derived value, which is 1 for a ratio."""
    return Row(quantity, expected, found, tolerance, unit, "derived")


def offline_rows(device: str, settings: Mapping[str, Any], element: Element, duration: float) -> Rows:
    """Return the rows of a run without a clock that is not recorded."""
    run = run_offline(lambda clock: create_device(device, settings, clock=clock), element, duration, keep_rows=True)
    assert run.rows is not None, "they were asked for"
    return run.rows
