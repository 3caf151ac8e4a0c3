"""Friction compensated in a session.

Its parameter file is copied to the session's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from apps.experiment.design import Design
from apps.experiment.journal import Journal, SessionFolder
from apps.experiment.journal.schema import OWN_FRICTION
from apps.experiment.stimulus.own import FILE
from haptics.errors import RecordingError
from haptics.files import write_atomically
from haptics.reading import read_small, sha256_of


class Hands(Protocol):
    """User interface of the friction measurement."""

    def free(self, seconds: float) -> None:
        """Ask the participant to release the handle for `seconds` [s], and wait for the confirmation."""
        ...

    def progress(self, seconds: float) -> None:
        """Report the elapsed time [s].

        Raise to stop the measurement.
        """
        ...

    def report_result(self, words: str) -> None:
        """Report the result."""
        ...


class NullHandleRelease:
    """Implementation for simulated observers, whose device has no hand to release.

    All methods do nothing.
    """

    def free(self, seconds: float) -> None:
        """Return at once."""

    def progress(self, seconds: float) -> None:
        """Do nothing."""

    def report_result(self, words: str) -> None:
        """Do nothing."""


def own_file(place: SessionFolder) -> Path:
    """Return the path of the friction file of a session."""
    return place.folder / FILE


def copy_compensation(design: Design, place: SessionFolder) -> None:
    """Copy the file of the compensated friction unchanged to the session's folder."""
    named = design.session.device_settings.get("friction_parameters")
    if named and not design.friction.measure_each_session:
        write_atomically(own_file(place), read_small(named).decode("utf-8"))


def measured(records: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the event of the friction measurement of a session, or None if there was no measurement."""
    return next((one for one in reversed(records) if one["record"] == "event" and one["name"] == OWN_FRICTION), None)


def with_friction(design: Design, journal: Journal, hands: Hands, write: Callable[..., None], *, live: bool) -> Design:
    """Return the design with the friction that this session compensates, measured now if configured.

    A resumed session continues with its original friction. `write` adds an event to the journal.

    Raises
    ------
    HapticError
        If the friction cannot be measured, or the measured file is missing or changed.
    """
    if not design.friction.measure_each_session:
        return design
    from apps.experiment.friction.measuring import duration, facts_of, measure

    place, told = journal.place, measured(journal.records)
    out = own_file(place)
    if told is None:
        seconds = duration(design)
        hands.free(seconds)
        recording = _unused(place.folder / "friction")
        file = measure(design, recording, out, live=live, progress=hands.progress)
        told = facts_of(design, file, out, recording.name)
        write(OWN_FRICTION, **told)
        hands.report_result(str(told["words"]))
    elif not out.is_file() or sha256_of(out) != told["sha256"]:
        raise RecordingError(f"{out} is not the friction that was measured for this session; it was changed.")
    return design.with_friction_file(out)


def _unused(folder: Path) -> Path:
    """Return the path of a new folder.

    Folders of interrupted measurements may exist already.
    """
    number = 1
    while (found := folder if number == 1 else folder.with_name(f"{folder.name}_{number}")).exists():
        number += 1
    return found
