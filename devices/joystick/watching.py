"""A watchdog over a stick: regular checks that it still reports, has power and plays its effects.

*Its positions.* A stick may be silent while nothing moves, and one that has stopped to report is silent, too. While it
has a force on and says nothing, it is asked where its handle is: one that has moved without a word has failed. Not
every stick answers such a question; of one that did not when it was opened this cannot be found out.

*Its own state.* What it reports without being asked, or answers, must not get worse: motors that were enabled and had
power still are and have, and nothing is paused. In the first moments that means nothing: reports may be old ones.

*The computer.* One that has slept may have let the stick fall asleep, and many forget their effects then.
"""

from __future__ import annotations

import contextlib
import math
import time

from devices.common.bus.transfers import TransferError
from devices.joystick.hid import usages as use
from devices.joystick.hid.layout import Report
from devices.joystick.hid.report import ReportError, decode
from devices.joystick.inputs import InputLayout, Sample
from devices.joystick.usb.transport import AGAIN, Transport
from haptics.errors import DeviceFault

PERIOD = 0.05
"""Time between two looks [s]."""

SILENCE = 0.1
"""A stick with a force on that has said nothing for so long is asked [s]."""

STATE_PERIOD = 0.25
"""Its state is asked for as often [s]."""

SETTLED = 0.1
"""What it reports of its state is no old news so long after it was set up [s]."""

_DOUBTS = 2
_SAME = 1
_SLEPT = 0.1

_CONDITIONS = {
    "has switched its motors off": (use.ACTUATORS_ENABLED, 1),
    "has no power for its motors": (use.ACTUATOR_POWER, 1),
    "has paused all forces": (use.DEVICE_PAUSED, 0),
}
"""What may be wrong, and the usage and its value by which a stick rules that out."""


class Watch:
    """Looks at a stick that plays forces.

    Parameters
    ----------
    transport : Transport
        The open connection.
    layout : InputLayout
        Of the input reports.
    """

    def __init__(self, transport: Transport, layout: InputLayout) -> None:
        self._transport = transport
        self._layout = layout
        self._tells_position = self._tells_state = False
        self._ruled_out = frozenset[str]()
        self._settled = self._state_due = math.inf
        self._doubts = 0
        self._asleep = _time_asleep()

    def begin(self) -> Sample | None:
        """Find out what the stick, which was just set up, can be asked; return where its handle is, if it says so."""
        sample = self._position()
        self._tells_position = sample is not None
        now = time.perf_counter()
        self._settled, self._state_due = now + SETTLED, now + STATE_PERIOD
        self._tells_state = self._hear_state()
        return sample

    def look(self, latest: Sample, pushing: bool) -> None:
        """See whether the stick is all right; `latest` is its last position, `pushing` whether it has a force on.

        Raises
        ------
        DeviceFault
            If it is not.
        """
        if _time_asleep() - self._asleep > _SLEPT:
            raise DeviceFault("the computer was suspended, and the stick may have lost its effects: start again.")
        self._look_at_position(latest, pushing)
        if self._tells_state and time.perf_counter() > self._state_due:
            self._state_due = time.perf_counter() + STATE_PERIOD
            self._hear_state()

    def _look_at_position(self, latest: Sample, pushing: bool) -> None:
        silent = time.perf_counter() - latest.time > SILENCE
        if not (pushing and silent and self._tells_position):
            self._doubts = 0
            return
        answer = self._position()
        same = answer is not None and max(abs(answer.x - latest.x), abs(answer.y - latest.y)) <= _SAME
        self._doubts = 0 if same else self._doubts + 1
        if self._doubts >= _DOUBTS:
            raise DeviceFault(f"the stick has stopped reporting the position of its handle: {AGAIN}.")

    def hear(self, data: bytes) -> None:
        """Take what the stick says of its own state.

        Raises
        ------
        DeviceFault
            If it cannot play forces any more, though it could before.
        """
        report = self._layout.state
        if report is None:
            return
        try:
            state = decode(report, data)
        except ReportError:  # cut short
            return
        ruled_out = {fault for fault, (usage, wanted) in _CONDITIONS.items() if state.get(usage) == wanted}
        lost = [fault for fault in _CONDITIONS if fault in self._ruled_out - ruled_out]
        if lost and time.perf_counter() > self._settled:
            raise DeviceFault(
                f"the stick reports that it {' and '.join(lost)}: check its switches and its supply, and start again."
            )
        self._ruled_out |= ruled_out

    # --- questions ---------------------------------------------------------------------------------------------------

    def _position(self) -> Sample | None:
        data = self._ask(self._layout.report)
        return None if data is None else self._layout.sample(data, time.perf_counter())

    def _hear_state(self) -> bool:
        """Ask for the state; return whether there was an answer."""
        data = None if self._layout.state is None else self._ask(self._layout.state)
        if data is not None:
            self.hear(data)
        return data is not None

    def _ask(self, report: Report) -> bytes | None:
        """Return an input report that is asked for, None if the stick does not give it, or another one."""
        with contextlib.suppress(TransferError):
            data = self._transport.get_input(report.id, report.length)
            if len(data) >= report.length and (not report.id or data[0] == report.id):
                return data
        return None


def _time_asleep() -> float:
    """Return for how long the computer has slept since it was started [s], as far as its system says so."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
