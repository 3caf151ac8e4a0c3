"""The recordings of a session that can be packed, and what must be known of them before."""

from __future__ import annotations

from pathlib import Path

from apps.experiment.journal import SessionFolder, read_journal, replay
from apps.experiment.stimulus import measure
from haptics.recording.recording import TICKS


def recordings_of(place: SessionFolder) -> list[Path]:
    """Return the recordings of a session's blocks, and of the motions by which its device was measured."""
    return sorted({path.parent for path in place.folder.glob("*/recording.json")} | _blocks(place))


def _blocks(place: SessionFolder) -> set[Path]:
    return {path.parent for path in place.folder.glob("blocks/*/recording.json")}


def know_stimuli(place: SessionFolder) -> None:
    """Measure what was delivered and felt in every block, which keeps that beside the recording: reports need no ticks.

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
