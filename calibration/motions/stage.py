"""What both ways to run a procedure have in common: its parts, its end, and how that is told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from calibration.motions.course import Course
from calibration.motions.mover import Mover
from calibration.motions.present import Present
from haptics.certificate import certificate, felt, flags_seen
from haptics.device import DeviceSpec
from haptics.ending import Ending
from haptics.envelope import Limits
from haptics.fitness import Fitness
from haptics.recording import Recorder
from haptics.trace import Trace

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
    started : bool
        Whether the device has been opened.
    used : dict
        What the run used and was granted of the machine.
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
    started: bool = False
    used: dict[str, Any] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """Why the run ended, if not by a fault."""
        if self.error is None:
            return COMPLETED
        return INTERRUPTED if isinstance(self.error, KeyboardInterrupt) else STOPPED

    def settle(self, ending: Ending, trace: Trace) -> None:
        """Close the recording, whose rows are all there; raise what went wrong.

        A device that never was opened leaves no recording.
        """
        rows = ending.settle(self.reason, complete=self.started)
        if self.started or ending.servo_lost:
            timing = certificate(rows, trace.count, None, self.mover.period)
            unfit = Fitness().judge(timing, str(ending.fault) if ending.fault else None)
            timing |= {"fit": not unfit, "unfit_because": unfit, **self.used}
            ending.certify(certificate=timing, flags=flags_seen(rows), **felt(rows, self.spec.causality))
        else:
            shutil.rmtree(self.recorder.folder, ignore_errors=True)
        error = ending.fault or self.error
        if error is not None:
            raise error
