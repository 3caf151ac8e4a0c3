"""Supervision of a running servo: watchdog, dead-man's key, stop requests and new settings.

A servo ends regularly when it is requested to stop, or when its application is dead, stopped or silent (no heartbeat),
because the participant is then no longer supervised.
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
"""New parameters of the element, and their version in the recording."""

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
"""Fields for the watchdog in a record; ``application`` is 0 without an application to watch."""


@kernel
def _is_silent(s: Any, heartbeat: int) -> bool:
    """Return True if the heartbeat has not changed for too long.

    The timeout is counted in ticks instead of wall time, so that a suspended machine does not trigger it.
    """
    if heartbeat != s.last_heartbeat:
        s.last_heartbeat, s.silent_ticks = heartbeat, 0
        return False
    s.silent_ticks += 1
    return bool(s.silent_ticks > s.silent_at)


@kernel
def _has_gone(s: Any, scratch: Any) -> bool:
    """Check at intervals whether the application has ended or was stopped."""
    s.patience -= 1
    if s.patience > 0 or s.status_file < 0:
        return False
    s.patience = s.look_every
    return process_is_lost(s.status_file, scratch)


@kernel
def why_to_end(s: Any, control: Any, scratch: Any) -> int:
    """Return `STOPPED`, `APPLICATION_LOST`, or 0 to continue; must be called once per tick."""
    if control.stop != 0:
        return STOPPED
    if s.application == 0:
        return 0
    lost = _is_silent(s, control.heartbeat_ns) or parent_process() != s.application or _has_gone(s, scratch)
    return APPLICATION_LOST if lost else 0


@kernel
def key_is_held(control: Any, scratch: Any) -> bool:
    """Return True if the dead-man's key is held."""
    return bool(monotonic_ns(scratch) - control.key_ns < _KEY_LASTS_NS)


@kernel
def _why_now(watch: Rows, control: Rows, scratch: Any) -> int:
    return why_to_end(watch[0], control[0], scratch)


@kernel
def _held_now(control: Rows, scratch: Any) -> bool:
    return key_is_held(control[0], scratch)


@kernel
def take_settings(core: Rows, core_words: Any, sequence: Any, settings: Any, latest: Any, seen: Any) -> None:
    """Apply settings that were published since the last call; keep the present ones during a write.

    `sequence` and `settings` are the lane, `latest` is a buffer for a copy, and `seen` is the last processed sequence.
    The arrays `settings`, `core_words` (the rendering's record) and `latest` consist of 8-byte words.
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
    """Watched application and control messages of a servo; inactive without arguments.

    Parameters
    ----------
    control : Lane, optional
        Control record of dtype `haptics.servo.job.CONTROL`.
    settings : Lane, optional
        Settings of dtype `SETTINGS`.
    application : int, optional
        Process id of the application to watch.
    """

    def __init__(self, control: Lane | None = None, settings: Lane | None = None, application: int = 0) -> None:
        self._scratch = np.zeros(SCRATCH, np.int64)
        self._control: NDArray[Any] = np.zeros(1, CONTROL) if control is None else control.record
        self._local_sequence, self._local, self._latest = np.zeros(1, np.int64), _room(), _room()
        self._seen = np.zeros(2, np.int64)
        self._sequence = np.zeros(1, np.int64) if settings is None else settings.sequence
        self._settings: NDArray[Any] = _room() if settings is None else settings.record.view(np.int64)
        self._application, self._status_file = application, -1
        with contextlib.suppress(OSError):  # no such process or no /proc: rely on the other checks
            self._status_file = os.open(Path(f"/proc/{application}/stat"), os.O_RDONLY | os.O_CLOEXEC)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arguments for `haptics.servo.loop_kernels.run_ticks`, by name."""
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
        """Whether the output must fade out."""
        return bool(self._control["gate_closed"][0])

    def gate(self, closed: bool) -> None:
        """Fade the output out or in."""
        self._control["gate_closed"] = closed

    def mark(self, marker: int) -> None:
        """Set the marker of the rows from the next tick on."""
        self._control["marker"] = marker

    @property
    def marker(self) -> int:
        """Marker of the next row: the trial or stage that the tick belongs to."""
        return int(self._control["marker"][0])

    def prepare(self, record: NDArray[Any]) -> None:
        """Fill the fields `WATCH_FIELDS` of a (1,) record with a ``period`` [s], for a new run."""
        period = float(record["period"][0])
        record["application"], record["status_file"] = self._application, self._status_file
        record["patience"] = record["look_every"] = max(int(LOOK_EVERY / period), 1)
        record["last_heartbeat"] = record["silent_ticks"] = 0
        record["silent_at"] = math.ceil(SILENCE / period)

    def warm_up(self, record: NDArray[Any], core: NDArray[Any], core_words: NDArray[Any]) -> None:
        """Compile the code for a tick in Python, with copies of its records."""
        self.why_to_end(record.copy())
        self.key_is_held()
        take_settings(core, core_words, np.zeros(1, np.int64), _room(), _room(), np.zeros(1, np.int64))

    def publish(self, parameters: NDArray[Any], version: int) -> None:
        """Apply a (1,) record of dtype `haptics.elements.kernels.PARAMETERS` from the next tick on.

        The record is used in this process only, so it may contain addresses. May be called from any thread.
        """
        self._local_sequence += 1
        self._local[0] = version
        self._local[1:] = parameters.view(np.int64)
        self._local_sequence += 1

    def stop(self) -> None:
        """End the run at the next tick."""
        self._control["stop"] = 1

    def why_to_end(self, record: NDArray[Any]) -> int:
        """Return `STOPPED`, `APPLICATION_LOST`, or 0; must be called once per tick with a prepared record."""
        return _why_now(record, self._control, self._scratch)

    def key_is_held(self) -> bool:
        """Return True if the dead-man's key is held."""
        return _held_now(self._control, self._scratch)

    def take_settings(self, core: NDArray[Any], core_words: NDArray[Any]) -> None:
        """Apply new settings to the (1,) record of a rendering."""
        take_settings(core, core_words, self._sequence, self._settings, self._latest, self._seen[:1])
        take_settings(core, core_words, self._local_sequence, self._local, self._latest, self._seen[1:])


def _room() -> NDArray[np.int64]:
    """Return an empty settings buffer of 8-byte words."""
    return np.zeros(SETTINGS.itemsize // 8, np.int64)
