"""The friction that a session is run with: its file is kept in the session's folder, whatever becomes of the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from apps.experiment.design import Design
from apps.experiment.journal import Journal, SessionFolder
from apps.experiment.journal.schema import OWN_FRICTION
from apps.experiment.stimulus.own import FILE
from haptics.errors import RecordingError
from haptics.files import write_whole
from haptics.reading import read_small, sha256_of


class Hands(Protocol):
    """Whoever must let go of the handle, and hears what came of it."""

    def free(self, seconds: float) -> None:
        """Ask for the handle to be let go, for so long [s]; return once it is."""
        ...

    def progress(self, seconds: float) -> None:
        """Take note of the time that has gone by [s]; raise if the session is to end."""
        ...

    def told(self, words: str) -> None:
        """Hear what was found."""
        ...


class Nobody:
    """There is no hand on a device that a simulated observer has."""

    def free(self, seconds: float) -> None:
        """Nobody has to let go."""

    def progress(self, seconds: float) -> None:
        """Nobody waits."""

    def told(self, words: str) -> None:
        """Nobody hears."""


def own_file(place: SessionFolder) -> Path:
    """Return where the friction of a session is kept."""
    return place.folder / FILE


def keep(design: Design, place: SessionFolder) -> None:
    """Keep the file of the friction that is compensated in the session's folder, byte by byte."""
    named = design.session.device_settings.get("friction_parameters")
    if named and not design.friction.measure_each_session:
        write_whole(own_file(place), read_small(named).decode("utf-8"))


def measured(records: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the event that says what was measured in a session, None if nothing was."""
    return next((one for one in reversed(records) if one["record"] == "event" and one["name"] == OWN_FRICTION), None)


def with_friction(design: Design, journal: Journal, hands: Hands, write: Callable[..., None], *, live: bool) -> Design:
    """Return the experiment with the friction that this session is to compensate: measured now, where that is wanted.

    A session that is taken up again goes on with what it began with. `write` puts an event into the journal.

    Raises
    ------
    HapticError
        If it cannot be measured, or what was measured is not there any more.
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
        hands.told(str(told["words"]))
    elif not out.is_file() or sha256_of(out) != told["sha256"]:
        raise RecordingError(f"{out} is not the friction that was measured for this session; it was changed.")
    return design.with_friction_file(out)


def _unused(folder: Path) -> Path:
    """Return a folder that is not there: a measurement may have been interrupted before."""
    number = 1
    while (found := folder if number == 1 else folder.with_name(f"{folder.name}_{number}")).exists():
        number += 1
    return found
