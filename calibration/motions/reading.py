"""Rows of each motion in the recording of a procedure."""

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
    """Return the source of measurements in a recording."""
    device = recording.metadata.get("device", {})
    name = f"{device.get('name', '')} {device.get('identity', '')}".strip()
    return Source(str(recording.folder), digest_of(recording.ticks), name)


def rows_of(recording: Recording) -> Iterator[tuple[str, Rows]]:
    """Yield the label and the rows of every motion in a recording.

    Rows of other programs are skipped. The last row of a finished motion has ``sticking`` set.
    """
    stretches = _stretches(recording)
    for entry in recording.settings:
        motion = entry.get("motion")
        if entry.get("model") == Motion.model and isinstance(motion, dict):
            begin, end = stretches.get(int(entry["version"]), (0, 0))
            yield str(motion.get("label", "")), recording.read(begin, end)


def _stretches(recording: Recording) -> dict[int, tuple[int, int]]:
    """Return the range of rows of each version of the settings."""
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
