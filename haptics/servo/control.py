"""Communication between an application and its servo: job, control record, settings and supervision.

The application owns the shared files: the trace (from the servo), and the mailboxes of settings and of control messages
(to the servo). Both sides monitor each other. A servo ends regularly when it is requested to stop, or when its
application is dead, stopped or silent (no heartbeat), because the participant is then no longer supervised.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.clock import Clock
from haptics.device import Device
from haptics.rendering.envelope import Limits
from haptics.rendering.programs import Program
from haptics.servo import kernels
from haptics.servo.realtime import RealTimeSettings
from haptics.shared import Mailbox, SharedFile

# --- job --------------------------------------------------------------------------------------------------------------

DISMISSED = ("dismissed", None)
"""Message of the application that dismisses a servo."""

DeviceFactory = Callable[[Clock], Device]
"""Function that creates the device in the servo process; must be picklable (`functools.partial`)."""


@dataclass(frozen=True)
class SharedFiles:
    """Files that connect an application with its servo; the application owns them."""

    trace: SharedFile
    settings: SharedFile
    control: SharedFile

    @classmethod
    def unique(cls) -> SharedFiles:
        """Create new files."""
        return cls(SharedFile("trace"), SharedFile("settings"), SharedFile("control"))

    def close(self) -> None:
        """Unlink the files. Existing mappings stay valid."""
        for file in (self.trace, self.settings, self.control):
            file.close()

    def remove_orphaned(self) -> None:
        """Remove named files in the servo process after the application has died."""
        for file in (self.trace, self.settings, self.control):
            file.remove_orphaned()


@dataclass(frozen=True)
class Job:
    """Parameters of a servo process.

    Attributes
    ----------
    factory : callable
        Creates the device, given the clock of the run.
    element : Element or Motion
        Initial program.
    limits : Limits or None
        Limits of the envelope; the device's limits if None.
    duration : float or None
        Duration of the run [s]; unlimited if None.
    recording : Path
        Folder of the recording, which the servo completes if the application dies.
    paths : SharedFiles
        The existing connecting files.
    real_time : RealTimeSettings
        Requests to the operating system.
    live : bool
        Whether the run follows the wall clock; otherwise it runs in simulated time, as fast as possible.
    steps : bool
        Whether a run in simulated time executes only the ticks that were granted (`ServoProcess.grant`).
    """

    factory: DeviceFactory
    element: Program
    limits: Limits | None
    duration: float | None
    recording: Path
    paths: SharedFiles
    real_time: RealTimeSettings = field(default_factory=RealTimeSettings)
    live: bool = True
    steps: bool = False


# --- supervision ------------------------------------------------------------------------------------------------------


class ControlMessages:
    """Control messages from an application to a servo.

    Attributes
    ----------
    control : (1,) structured array
        Control record of dtype `haptics.servo.kernels.CONTROL`.
    """

    control: NDArray[Any]

    def stop(self) -> None:
        """Request the end of the run from the next tick on; may be called from any thread or a signal handler."""
        self.control["stop"] = 1

    def mark(self, marker: int) -> None:
        """Set the marker of the rows from the next tick on."""
        self.control["marker"] = marker

    def gate(self, closed: bool) -> None:
        """Fade the output out or in within `haptics.servo.kernels.GATE_TIME`, for example between trials."""
        self.control["gate_closed"] = closed


class Supervision(ControlMessages):
    """Watched application and control messages of a servo; inactive without arguments.

    Parameters
    ----------
    control : Mailbox, optional
        Control record of dtype `haptics.servo.kernels.CONTROL`.
    settings : Mailbox, optional
        Settings of dtype `SETTINGS`.
    application : int, optional
        Process id of the application to watch.
    """

    def __init__(self, control: Mailbox | None = None, settings: Mailbox | None = None, application: int = 0) -> None:
        self._scratch = np.zeros(kernels.SCRATCH, np.int64)
        self.control = np.zeros(1, kernels.CONTROL) if control is None else control.record
        self._local_sequence, self._local, self._latest = np.zeros(1, np.int64), _empty_settings(), _empty_settings()
        self._seen = np.zeros(2, np.int64)
        self._sequence = np.zeros(1, np.int64) if settings is None else settings.sequence
        self._settings: NDArray[Any] = _empty_settings() if settings is None else settings.record.view(np.int64)
        self._application, self._status_file = application, -1
        with contextlib.suppress(OSError):  # no such process or no /proc: rely on the other checks
            self._status_file = os.open(Path(f"/proc/{application}/stat"), os.O_RDONLY | os.O_CLOEXEC)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arguments for `haptics.servo.kernels.run_ticks`, by name."""
        return {
            "controls": self.control,
            "sequence": self._sequence,
            "settings": self._settings,
            "local_sequence": self._local_sequence,
            "local_settings": self._local,
            "latest": self._latest,
            "seen": self._seen,
            "scratch": self._scratch,
        }

    def begin(self, record: NDArray[Any]) -> None:
        """Fill the fields `WATCH_FIELDS` of a (1,) record with a ``period`` [s], for a new run."""
        period = float(record["period"][0])
        record["application"], record["status_file"] = self._application, self._status_file
        record["ticks_until_check"] = record["ticks_between_checks"] = max(int(kernels.CHECK_INTERVAL / period), 1)
        record["last_heartbeat"] = record["silent_ticks"] = 0
        record["max_silent_ticks"] = math.ceil(kernels.HEARTBEAT_TIMEOUT / period)

    def warm_up(self, record: NDArray[Any], core: NDArray[Any], core_words: NDArray[Any]) -> None:
        """Compile the code for a tick in Python, with copies of its records."""
        self.end_reason(record.copy())
        self.key_is_held()
        kernels.apply_settings(
            core, core_words, np.zeros(1, np.int64), _empty_settings(), _empty_settings(), np.zeros(1, np.int64)
        )

    def publish(self, parameters: NDArray[Any], version: int) -> None:
        """Apply a (1,) record of dtype `haptics.elements.kernels.PARAMETERS` from the next tick on.

        The record is used in this process only, so it may contain addresses. May be called from any thread.
        """
        self._local_sequence += 1
        self._local[0] = version
        self._local[1:] = parameters.view(np.int64)
        self._local_sequence += 1

    def end_reason(self, record: NDArray[Any]) -> int:
        """Return `STOPPED`, one of `LOSSES`, or 0; must be called once per tick with a prepared record."""
        return kernels.end_reason_of(record, self.control, self._scratch)

    def key_is_held(self) -> bool:
        """Return True if the dead-man's key is held."""
        return kernels.key_is_held_of(self.control, self._scratch)

    def apply_settings(self, core: NDArray[Any], core_words: NDArray[Any]) -> None:
        """Apply new settings to the (1,) record of a rendering."""
        kernels.apply_settings(core, core_words, self._sequence, self._settings, self._latest, self._seen[:1])
        kernels.apply_settings(core, core_words, self._local_sequence, self._local, self._latest, self._seen[1:])


def _empty_settings() -> NDArray[np.int64]:
    """Return an empty settings buffer of 8-byte words."""
    return np.zeros(kernels.SETTINGS.itemsize // 8, np.int64)
