"""What a recording of a procedure holds of each of its motions."""

from __future__ import annotations

from collections.abc import Iterator

from calibration.data.files import Source
from calibration.motions.course import own_rows
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
    for entry in recording.settings:
        motion = entry.get("motion")
        if entry.get("model") == Motion.model and isinstance(motion, dict):
            yield str(motion.get("label", "")), own_rows(recording.rows, int(entry["version"]))
