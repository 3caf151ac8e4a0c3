"""Recordings of a session that can be packed, and the measurement of their stimuli."""

from __future__ import annotations

from pathlib import Path

from apps.experiment.journal import SessionFolder, read_journal, replay
from apps.experiment.stimulus import measure
from haptics.recording.recording import TICKS


def recordings_of(place: SessionFolder) -> list[Path]:
    """Return the recordings of the blocks and friction measurements of a session."""
    return sorted({path.parent for path in place.folder.glob("*/recording.json")} | _blocks(place))


def _blocks(place: SessionFolder) -> set[Path]:
    return {path.parent for path in place.folder.glob("blocks/*/recording.json")}


def store_stimuli(place: SessionFolder) -> None:
    """Measure the delivered and felt stimuli of every block, and store them so that reports need no ticks.

    Raises
    ------
    RecordingError
        If a recording cannot be read.
    """
    state = replay(read_journal(place.journal).records)
    for attempt in state.attempts:
        for name in state.recordings_of(attempt)[:1]:
            folder = place.inside(name)
            if (folder / TICKS).exists():
                measure(folder, attempt.start)
