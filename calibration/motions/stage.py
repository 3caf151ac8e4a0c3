"""What both ways to run a procedure have in common: its parts, its end, and how that is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from calibration.motions.course import Course
from calibration.motions.mover import Mover
from calibration.motions.present import Present
from haptics.device import DeviceSpec
from haptics.recording.ending import Ending
from haptics.recording.recorder import Recorder
from haptics.rendering.envelope import Limits

COMPLETED, STOPPED, INTERRUPTED = "completed", "stopped", "interrupted"


@dataclass
class Stage:
    """A procedure, what it moves and where it is recorded.

    Attributes
    ----------
    mover, course, spec, limits, recorder
        What is moved, by what, within which limits, and where that is written down.
    progress : callable
        Gets the time that has gone by [s].
    warn : callable
        Takes what went wrong besides, in words.
    present : Present
        Looks at the run.
    error : BaseException or None
        What ended the run but is no fault of the device: the procedure's own, or an interrupt.
    """

    mover: Mover
    course: Course
    spec: DeviceSpec
    limits: Limits
    recorder: Recorder
    progress: Callable[[float], None]
    warn: Callable[[str], None]
    present: Present
    error: BaseException | None = None

    @property
    def reason(self) -> str:
        """Why the run ended, if not by a fault."""
        if self.error is None:
            return COMPLETED
        return INTERRUPTED if isinstance(self.error, KeyboardInterrupt) else STOPPED

    def certify(
        self,
        ending: Ending,
        used: Mapping[str, Any] | None = None,
        granted: Mapping[str, Any] | None = None,
    ) -> None:
        """Add the certificate to the recording (`haptics.recording.ending.Ending.certify`); raise what went wrong."""
        ending.certify(self.spec.causality, used=used, granted=granted)
        error = ending.fault or self.error
        if error is not None:
            raise error
