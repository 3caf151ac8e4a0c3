"""What a recording of a procedure holds of each of its motions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from calibration.data.files import Source
from haptics.recording.recording import Recording
from haptics.recording.tick_file import digest_of
from haptics.records import Rows
from haptics.rendering.motion import Motion


def source_of(recording: Recording) -> Source:
    """Return where measurements from a recording come from."""
    device = recording.metadata.get("device", {})
    name = f"{device.get('name', '')} {device.get('identity', '')}".strip()
    return Source(str(recording.folder), digest_of(recording.ticks), name)


def rows_of(recording: Recording) -> Iterator[tuple[str, Rows]]:
    """Yield the label of every motion of a recording and its rows, as far as it came; nothing of other programs.

    Of a motion that came to its end, the last row says so (``sticking``).
    """
    stretches = _stretches(recording)
    for entry in recording.settings:
        motion = entry.get("motion")
        if entry.get("model") == Motion.model and isinstance(motion, dict):
            begin, end = stretches.get(int(entry["version"]), (0, 0))
            yield str(motion.get("label", "")), recording.read(begin, end)


def _stretches(recording: Recording) -> dict[int, tuple[int, int]]:
    """Return from which row and to which each version of the settings was in force."""
    found: dict[int, tuple[int, int]] = {}
    place = 0
    for rows in recording.chunks(("settings_version",)):
        versions = rows["settings_version"]
        edges = [0, *(np.flatnonzero(np.diff(versions)) + 1).tolist(), len(versions)]
        for begin, end in itertools.pairwise(edges):
            version = int(versions[begin])
            found[version] = found.get(version, (place + begin, 0))[0], place + end
        place += len(versions)
    return found
