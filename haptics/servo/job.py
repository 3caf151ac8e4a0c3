"""What an application and its servo process must agree on: the job, the files between them, how long a silence lasts.

The application owns the files: the trace (up), the settings lane and the control record (down). Each side watches the
other; `haptics.servo.serving` is the one side, `haptics.servo.process` the other.
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
"""Timeout of the servo's watchdog [s]: an application without a heartbeat for so long counts as lost."""

LOOK_EVERY = 4e-3
"""How often the servo looks whether the application was stopped or has died [s]."""

KEY_LASTS = 0.15
"""The dead-man's key counts as held for this long after the last report that it is [s]."""

CONTROL = np.dtype([(name, "<i8") for name in ("heartbeat_ns", "stop", "key_ns", "marker", "recorded", "gate_closed")])
"""What the application tells the servo besides settings; each field is one aligned store. ``marker`` goes into the row
of every tick: the trial or stage that it belongs to. ``recorded`` counts the rows that are on the disk, for which a run
without a clock waits; while ``gate_closed`` is not 0 the output goes down and stays there."""

DISMISSED = ("dismissed", None)
"""Message with which the application dismisses a servo."""

DeviceFactory = Callable[[Clock], Device]
"""Builds the device inside the servo process; must be picklable, for instance a `functools.partial`."""


@dataclass(frozen=True)
class Paths:
    """The files that connect an application with its servo; the application owns them."""

    trace: SharedFile
    settings: SharedFile
    control: SharedFile

    @classmethod
    def unique(cls) -> Paths:
        """Make new files."""
        return cls(SharedFile("trace"), SharedFile("settings"), SharedFile("control"))

    def close(self) -> None:
        """Let nobody open them any more; whoever has them mapped keeps them."""
        for file in (self.trace, self.settings, self.control):
            file.close()

    def remove_for_the_dead(self) -> None:
        """Remove what names the files may have, in the servo, when the application has died."""
        for file in (self.trace, self.settings, self.control):
            file.remove_for_the_dead()


@dataclass(frozen=True)
class Job:
    """Everything the servo process needs to know.

    Attributes
    ----------
    factory : callable
        Builds the device, given the clock of the run.
    element : Element or Motion
        What to begin with.
    limits : Limits or None
        The envelope; the device's own limits if None.
    duration : float or None
        Length of the run [s]; until stopped if None.
    recording : Path
        Folder of the recording, for what happens when the application is gone.
    paths : Paths
        The connecting files, already made.
    real_time : RealTimeSettings
        What to ask the operating system for.
    live : bool
        Whether the run follows the clock of the wall; without, it is as fast as the machine can.
    """

    factory: DeviceFactory
    element: Program
    limits: Limits | None
    duration: float | None
    recording: Path
    paths: Paths
    real_time: RealTimeSettings = field(default_factory=RealTimeSettings)
    live: bool = True
