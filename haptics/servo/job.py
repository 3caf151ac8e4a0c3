"""Data shared by application and servo process: the job, the connecting files and timeouts.

The application owns the files: the trace (from the servo), the settings lane and the control record (to the servo).
Both sides monitor each other, in `haptics.servo.serving` and `haptics.servo.process`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from haptics.clock import Clock
from haptics.device import Device
from haptics.rendering.envelope import Limits
from haptics.rendering.programs import Program
from haptics.servo.realtime import RealTimeSettings
from haptics.shared import SharedFile

SILENCE = 1.0
"""Timeout of the servo's watchdog for the heartbeat of the application [s]."""

LOOK_EVERY = 4e-3
"""Interval at which the servo checks whether the application was stopped or has died [s]."""

KEY_LASTS = 0.15
"""Time for which the dead-man's key counts as held after the last report [s]."""

CONTROL = np.dtype([(name, "<i8") for name in ("heartbeat_ns", "stop", "key_ns", "marker", "recorded", "gate_closed")])
"""Control record from the application to the servo; each field is written with one aligned store.

``marker`` is the trial or stage and is copied to every row. ``recorded`` is the number of rows on disk, for which a run
in simulated time waits. While ``gate_closed`` is nonzero, the output is faded out.
"""

DISMISSED = ("dismissed", None)
"""Message of the application that dismisses a servo."""

DeviceFactory = Callable[[Clock], Device]
"""Function that creates the device in the servo process; must be picklable (`functools.partial`)."""


@dataclass(frozen=True)
class Paths:
    """Files that connect an application with its servo; the application owns them."""

    trace: SharedFile
    settings: SharedFile
    control: SharedFile

    @classmethod
    def unique(cls) -> Paths:
        """Create new files."""
        return cls(SharedFile("trace"), SharedFile("settings"), SharedFile("control"))

    def close(self) -> None:
        """Unlink the files. Existing mappings stay valid."""
        for file in (self.trace, self.settings, self.control):
            file.close()

    def remove_for_the_dead(self) -> None:
        """Remove named files in the servo process after the application has died."""
        for file in (self.trace, self.settings, self.control):
            file.remove_for_the_dead()


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
    paths : Paths
        The existing connecting files.
    real_time : RealTimeSettings
        Requests to the operating system.
    live : bool
        Whether the run follows the wall clock; otherwise it runs in simulated time, as fast as possible.
    """

    factory: DeviceFactory
    element: Program
    limits: Limits | None
    duration: float | None
    recording: Path
    paths: Paths
    real_time: RealTimeSettings = field(default_factory=RealTimeSettings)
    live: bool = True
