"""The end of a run: what went wrong, and a recording that says so.

A recording gets its last state as soon as all its rows are in it, and its certificate after that. Whoever is killed in
between leaves a closed recording without a certificate.
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
    """Return the fault of a run of whose recording the disk has refused a part."""
    return DeviceFault(f"the recording could not be written ({error.strerror or error}): {consequence}.")


class Ending:
    """Keeps what went wrong, and closes the recording.

    Parameters
    ----------
    recorder : Recorder
        The recording.
    trace : Trace
        What it records.
    tell : callable
        Takes a line for the person.

    Attributes
    ----------
    fault : HapticError or None
        What went wrong first.
    servo_lost : bool
        Whether the servo died, or was killed, without a word.
    """

    def __init__(self, recorder: Recorder, trace: Trace, tell: Callable[[str], None]) -> None:
        self._recorder = recorder
        self._trace = trace
        self._tell = tell
        self.fault: HapticError | None = None
        self.servo_lost = False

    def fail(self, fault: HapticError) -> None:
        """Take note of a fault; the first is that of the run, later ones are only shown."""
        self.servo_lost |= isinstance(fault, ServoLost)
        if self.fault is None:
            self.fault = fault
        else:
            self._tell(str(fault))

    def reason(self, otherwise: str) -> str:
        """Return why the run has ended: a fault, or what it is `otherwise`."""
        return FAULT if self.fault is not None else otherwise

    def settle(self, reason: str, *, complete: bool) -> None:
        """Give the recording, whose rows are all there, its last state.

        Parameters
        ----------
        reason : str
            Why the run ended, if not by a fault.
        complete : bool
            Whether the run had begun and was ended in order, as far as the application goes.
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
        """Add to the recording, which has its last state, what can be said about a run that had begun; return it.

        Parameters
        ----------
        causality : Causality
            That of the device.
        fitness : Fitness, optional
            The limits of a fit run.
        planned : int or None
            See `haptics.recording.certificate.RunSummary.certificate`.
        used, granted : mapping, optional
            What the servo used of the machine, and what it was granted; the latter is for the recording only.
        """
        limits, summary = fitness or Fitness(), self._recorder.summary
        timing, forces = summary.certificate(self._trace.count, planned), summary.felt(causality)
        timing |= {**self._judged(limits, timing), **(used or {})}
        self._note(certificate={**timing, **(granted or {})}, flags=summary.flags_seen(), **forces)
        timing |= self._judged(limits, timing)  # what could not be written makes it unfit
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
        """Write down the end of a servo that could not do so itself."""
        with contextlib.suppress(OSError):
            self._recorder.journal_event(
                "servo lost", ticks=self._trace.count, noticed_monotonic_ns=time.monotonic_ns()
            )
