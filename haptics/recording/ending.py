"""End of a run: fault handling, final state and certificate of the recording.

The final state is written as soon as all rows are recorded, and the certificate after that. A process killed in between
leaves a closed recording without a certificate.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from haptics.device import Causality
from haptics.errors import DeviceFault, HapticError, RecordingError, ServoLost
from haptics.recording.fitness import Fitness
from haptics.recording.recorder import Recorder
from haptics.trace import Trace

FAULT = "fault"


def not_written(error: OSError, consequence: str) -> DeviceFault:
    """Return the fault of a run whose recording could not be written completely."""
    return DeviceFault(f"the recording could not be written ({error.strerror or error}): {consequence}.")


class Ending:
    """Record the first fault of a run and close its recording.

    Parameters
    ----------
    recorder : Recorder
        The recording.
    trace : Trace
        Trace of the run.
    tell : callable
        Displays a line to the user.

    Attributes
    ----------
    fault : HapticError or None
        First fault of the run.
    servo_lost : bool
        Whether the servo process died or was killed without an error message.
    """

    def __init__(self, recorder: Recorder, trace: Trace, tell: Callable[[str], None]) -> None:
        self._recorder = recorder
        self._trace = trace
        self._tell = tell
        self.fault: HapticError | None = None
        self.servo_lost = False

    def fail(self, fault: HapticError) -> None:
        """Record the first fault as the fault of the run; display later ones."""
        self.servo_lost |= isinstance(fault, ServoLost)
        if self.fault is None:
            self.fault = fault
        else:
            self._tell(str(fault))

    def reason(self, otherwise: str) -> str:
        """Return the reason for the end of the run: ``fault``, or `otherwise` without a fault."""
        return FAULT if self.fault is not None else otherwise

    def settle(self, reason: str, *, complete: bool) -> None:
        """Write the final state of a recording whose rows are complete.

        Parameters
        ----------
        reason : str
            Reason for the end of the run if there was no fault.
        complete : bool
            Whether the run was started and ended regularly by the application.
        """
        try:
            self._recorder.require_rows()
        except RecordingError as error:
            self.fail(DeviceFault(f"the recording was lost in mid-run: {error}"))
        if self.servo_lost:
            self._journal_loss()
        result = {"reason": self.reason(reason), "error": str(self.fault) if self.fault else None}
        try:
            self._recorder.close(result, complete=complete and not self.servo_lost)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._recorder.note(state="interrupted", **result)
            self.fail(not_written(error, "its end is missing, its ticks are kept"))

    def certify(
        self,
        causality: Causality,
        *,
        fitness: Fitness | None = None,
        planned: int | None = None,
        used: Mapping[str, Any] | None = None,
        granted: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Add the certificate of a run to its closed recording and return it.

        Parameters
        ----------
        causality : Causality
            Causality of the device.
        fitness : Fitness, optional
            Limits for a fit run.
        planned : int or None
            See `haptics.recording.certificate.RunSummary.certificate`.
        used, granted : mapping, optional
            Resources that the servo used and was granted by the operating system; the latter are only recorded.
        """
        limits, summary = fitness or Fitness(), self._recorder.summary
        timing, forces = summary.certificate(self._trace.count, planned), summary.felt(causality)
        timing |= {**self._judged(limits, timing), **(used or {})}
        self._note(certificate={**timing, **(granted or {})}, flags=summary.flags_seen(), **forces)
        timing |= self._judged(limits, timing)  # a failure to write the certificate makes the run unfit
        return {**timing, **forces}

    def _judged(self, limits: Fitness, timing: dict[str, Any]) -> dict[str, Any]:
        """Return the verdict on a run with this timing certificate."""
        unfit = limits.judge(timing, str(self.fault) if self.fault is not None else None)
        return {"fit": not unfit, "unfit_because": unfit}

    def _note(self, **facts: Any) -> None:
        try:
            self._recorder.note(**facts)
        except OSError as error:
            self.fail(not_written(error, "its certificate is missing, its ticks are kept"))

    def _journal_loss(self) -> None:
        """Log the end of a servo process that died without logging it."""
        with contextlib.suppress(OSError):
            self._recorder.journal_event(
                "servo lost", ticks=self._trace.count, noticed_monotonic_ns=time.monotonic_ns()
            )
