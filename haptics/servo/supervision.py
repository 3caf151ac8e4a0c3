"""Supervision of a running servo: a watchdog over its application, the dead-man's key, stop, and new settings.

A servo ends in order when it is told to stop, and when its application is dead, stopped or silent (no heartbeat): then
nobody supervises the person at the handle any more.
"""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.elements.kernels import PARAMETER_FIELDS
from haptics.jit import kernel
from haptics.parts import fence
from haptics.records import Rows
from haptics.rendering.configuring import configure
from haptics.servo.job import CONTROL, KEY_LASTS, LOOK_EVERY, SILENCE
from haptics.servo.lane import Lane
from haptics.servo.system_kernels import SCRATCH, monotonic_ns, parent_process, process_is_lost

_KEY_LASTS_NS = round(KEY_LASTS * 1e9)

SETTINGS = np.dtype([("version", "<i8"), *PARAMETER_FIELDS])
"""New parameters of the element, and the version that a recording knows them by."""

STOPPED = 1
APPLICATION_LOST = 2

WATCH_FIELDS: list[tuple[Any, ...]] = [
    ("application", "<i8"),
    ("status_file", "<i8"),
    ("look_every", "<i8"),
    ("patience", "<i8"),
    ("last_heartbeat", "<i8"),
    ("silent_ticks", "<i8"),
    ("silent_at", "<i8"),
]
"""Fields of a record with which the kernels keep watch; 0 for ``application`` if there is none to be watched."""


@kernel
def _is_silent(s: Any, heartbeat: int) -> bool:
    """Tell whether the heartbeat has stood still for too long.

    Ticks are counted, not wall time, so that a suspended machine is not taken for a silent application.
    """
    if heartbeat != s.last_heartbeat:
        s.last_heartbeat, s.silent_ticks = heartbeat, 0
        return False
    s.silent_ticks += 1
    return bool(s.silent_ticks > s.silent_at)


@kernel
def _has_gone(s: Any, scratch: Any) -> bool:
    """Ask the kernel, now and then, whether the application still lives."""
    s.patience -= 1
    if s.patience > 0 or s.status_file < 0:
        return False
    s.patience = s.look_every
    return process_is_lost(s.status_file, scratch)


@kernel
def why_to_end(s: Any, control: Any, scratch: Any) -> int:
    """Return `STOPPED`, `APPLICATION_LOST`, or 0 to go on; to be asked once a tick."""
    if control.stop != 0:
        return STOPPED
    if s.application == 0:
        return 0
    lost = _is_silent(s, control.heartbeat_ns) or parent_process() != s.application or _has_gone(s, scratch)
    return APPLICATION_LOST if lost else 0


@kernel
def key_is_held(control: Any, scratch: Any) -> bool:
    """Tell whether the person holds the dead-man's key."""
    return bool(monotonic_ns(scratch) - control.key_ns < _KEY_LASTS_NS)


@kernel
def _why_now(watch: Rows, control: Rows, scratch: Any) -> int:
    return why_to_end(watch[0], control[0], scratch)


@kernel
def _held_now(control: Rows, scratch: Any) -> bool:
    return key_is_held(control[0], scratch)


@kernel
def take_settings(core: Rows, core_words: Any, sequence: Any, settings: Any, latest: Any, seen: Any) -> None:
    """Take over settings that were published since the last look; while they are being written, keep what there is.

    `sequence` and `settings` are the lane, `latest` is room to copy into and `seen` the sequence that was looked at
    last; settings, the rendering's record `core_words` and `latest` in words of 8 bytes.
    """
    before = sequence[0]
    if before == seen[0] or before % 2 != 0:
        return
    fence()
    for i in range(len(latest)):
        latest[i] = settings[i]
    fence()
    if sequence[0] == before:
        seen[0] = before
        configure(core, core_words, latest[1:])
        core[0].version = latest[0]


class Supervision:
    """What a servo watches and is told, or nothing of the kind.

    Parameters
    ----------
    control : Lane, optional
        Of dtype `haptics.servo.job.CONTROL`.
    settings : Lane, optional
        Of dtype `SETTINGS`.
    application : int, optional
        The process to watch.
    """

    def __init__(self, control: Lane | None = None, settings: Lane | None = None, application: int = 0) -> None:
        self._scratch = np.zeros(SCRATCH, np.int64)
        self._control: NDArray[Any] = np.zeros(1, CONTROL) if control is None else control.record
        self._local_sequence, self._local, self._latest = np.zeros(1, np.int64), _room(), _room()
        self._seen = np.zeros(2, np.int64)
        self._sequence = np.zeros(1, np.int64) if settings is None else settings.sequence
        self._settings: NDArray[Any] = _room() if settings is None else settings.record.view(np.int64)
        self._application, self._status_file = application, -1
        with contextlib.suppress(OSError):  # no such process, or no such file system: other signs must do
            self._status_file = os.open(Path(f"/proc/{application}/stat"), os.O_RDONLY | os.O_CLOEXEC)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What `haptics.servo.loop_kernels.run_ticks` must know of it, by the names of its arguments."""
        return {
            "controls": self._control,
            "sequence": self._sequence,
            "settings": self._settings,
            "local_sequence": self._local_sequence,
            "local_settings": self._local,
            "latest": self._latest,
            "seen": self._seen,
            "scratch": self._scratch,
        }

    @property
    def gate_closed(self) -> bool:
        """Whether the output is to be let down."""
        return bool(self._control["gate_closed"][0])

    def gate(self, closed: bool) -> None:
        """Let the output down, or up again."""
        self._control["gate_closed"] = closed

    def mark(self, marker: int) -> None:
        """Put `marker` into the rows from the next tick on."""
        self._control["marker"] = marker

    @property
    def marker(self) -> int:
        """What is to go into the row of a tick, to tell which trial or stage it belongs to."""
        return int(self._control["marker"][0])

    def prepare(self, record: NDArray[Any]) -> None:
        """Fill the fields `WATCH_FIELDS` of a (1,) record with a ``period`` [s], for a new run."""
        period = float(record["period"][0])
        record["application"], record["status_file"] = self._application, self._status_file
        record["patience"] = record["look_every"] = max(int(LOOK_EVERY / period), 1)
        record["last_heartbeat"] = record["silent_ticks"] = 0
        record["silent_at"] = math.ceil(SILENCE / period)

    def warm_up(self, record: NDArray[Any], core: NDArray[Any], core_words: NDArray[Any]) -> None:
        """Compile what a tick in Python needs, with copies of its records."""
        self.why_to_end(record.copy())
        self.key_is_held()
        take_settings(core, core_words, np.zeros(1, np.int64), _room(), _room(), np.zeros(1, np.int64))

    def publish(self, parameters: NDArray[Any], version: int) -> None:
        """Put a (1,) record of dtype `haptics.elements.kernels.PARAMETERS` in force from the next tick on.

        For this process: the addresses in it are its own. May be called from another thread than the loop's.
        """
        self._local_sequence += 1
        self._local[0] = version
        self._local[1:] = parameters.view(np.int64)
        self._local_sequence += 1

    def stop(self) -> None:
        """End the run at its next tick."""
        self._control["stop"] = 1

    def why_to_end(self, record: NDArray[Any]) -> int:
        """Return `STOPPED`, `APPLICATION_LOST`, or 0; once a tick, with a record that was prepared."""
        return _why_now(record, self._control, self._scratch)

    def key_is_held(self) -> bool:
        """Tell whether the person holds the dead-man's key."""
        return _held_now(self._control, self._scratch)

    def take_settings(self, core: NDArray[Any], core_words: NDArray[Any]) -> None:
        """Put settings that are new in force in the (1,) record of a rendering."""
        take_settings(core, core_words, self._sequence, self._settings, self._latest, self._seen[:1])
        take_settings(core, core_words, self._local_sequence, self._local, self._latest, self._seen[1:])


def _room() -> NDArray[np.int64]:
    """Return room for settings, in words."""
    return np.zeros(SETTINGS.itemsize // 8, np.int64)
