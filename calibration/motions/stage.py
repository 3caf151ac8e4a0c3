"""Common parts of the two ways to run a procedure: its state, its end, and error reporting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from calibration.motions.mover import Mover
from calibration.motions.present import Present
from calibration.motions.procedure_runner import ProcedureRunner
from haptics.device import DeviceSpec
from haptics.recording.recorder import Recorder, RunCloser
from haptics.rendering.envelope import Limits

COMPLETED, STOPPED, INTERRUPTED = "completed", "stopped", "interrupted"


@dataclass
class Stage:
    """Procedure with its device and recording.

    Attributes
    ----------
    mover, course, spec, limits, recorder
        Device factory, procedure, data sheet, safety envelope, and recorder.
    progress : callable
        Callback with the elapsed time [s].
    warn : callable
        Callback for warnings.
    present : Present
        Observer of the run.
    error : BaseException or None
        Exception that ended the run without a device fault: from the procedure, or an interrupt.
    """

    mover: Mover
    course: ProcedureRunner
    spec: DeviceSpec
    limits: Limits
    recorder: Recorder
    progress: Callable[[float], None]
    warn: Callable[[str], None]
    present: Present
    error: BaseException | None = None

    @property
    def reason(self) -> str:
        """Reason for the end of the run, if not a device fault."""
        if self.error is None:
            return COMPLETED
        return INTERRUPTED if isinstance(self.error, KeyboardInterrupt) else STOPPED

    def certify(
        self,
        ending: RunCloser,
        used: Mapping[str, Any] | None = None,
        granted: Mapping[str, Any] | None = None,
    ) -> None:
        """Add the certificate to the recording (`haptics.recording.recorder.RunCloser.certify`) and raise errors."""
        ending.certify(self.spec.causality, used=used, granted=granted)
        error = ending.fault or self.error
        if error is not None:
            raise error
