"""Monitoring of a stick: regular checks that it still reports, has power and plays its effects.

*Position.* A stick may send nothing while nothing moves, and so does a stick that has stopped reporting. While a force
is on and the stick is silent, its position is requested. If the handle has moved without a report, the stick has
failed. Not every stick answers such a request; if it did not answer when it was opened, this check is disabled.

*Device state.* The state that the stick reports, by itself or on request, must not get worse: the motors must stay
enabled and powered, and nothing may be paused. Reports in the first moments are ignored, because they may be old.

*Computer.* If the computer was suspended, the stick may have been suspended too, and many sticks lose their effects
then.
"""

from __future__ import annotations

import contextlib
import math
import time

from devices.common.bus import TransferError
from devices.joystick.hid import usages as use
from devices.joystick.hid.layout import Report
from devices.joystick.hid.report import ReportError, decode
from devices.joystick.inputs import InputLayout, Sample
from devices.joystick.usb.transport import AGAIN, Transport
from haptics.errors import DeviceFault

PERIOD = 0.05
"""Time between two checks [s]."""

SILENCE = 0.1
"""Silence of a stick with a nonzero force after which its position is requested [s]."""

STATE_PERIOD = 0.25
"""Interval of the requests for the device state [s]."""

SETTLED = 0.1
"""Time after set-up from which reported states are valid [s]."""

_DOUBTS = 2
_SAME = 1
_SLEPT = 0.1

_CONDITIONS = {
    "has switched its motors off": (use.ACTUATORS_ENABLED, 1),
    "has no power for its motors": (use.ACTUATOR_POWER, 1),
    "has paused all forces": (use.DEVICE_PAUSED, 0),
}
"""Possible faults, with the usage and the value that exclude each of them."""


class Watch:
    """Monitor of a stick that plays forces.

    Parameters
    ----------
    transport : Transport
        Open connection.
    layout : InputLayout
        Layout of the input reports.
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
        """Determine which requests the stick answers; return its position, None if it does not report it."""
        sample = self._position()
        self._tells_position = sample is not None
        now = time.perf_counter()
        self._settled, self._state_due = now + SETTLED, now + STATE_PERIOD
        self._tells_state = self._request_state()
        return sample

    def check(self, latest: Sample, pushing: bool) -> None:
        """Check the stick; `latest` is its last position, `pushing` is True while a force is on.

        Raises
        ------
        DeviceFault
            If a check fails.
        """
        if _time_asleep() - self._asleep > _SLEPT:
            raise DeviceFault("the computer was suspended, and the stick may have lost its effects: start again.")
        self._check_position(latest, pushing)
        if self._tells_state and time.perf_counter() > self._state_due:
            self._state_due = time.perf_counter() + STATE_PERIOD
            self._request_state()

    def _check_position(self, latest: Sample, pushing: bool) -> None:
        silent = time.perf_counter() - latest.time > SILENCE
        if not (pushing and silent and self._tells_position):
            self._doubts = 0
            return
        answer = self._position()
        same = answer is not None and max(abs(answer.x - latest.x), abs(answer.y - latest.y)) <= _SAME
        self._doubts = 0 if same else self._doubts + 1
        if self._doubts >= _DOUBTS:
            raise DeviceFault(f"the stick has stopped reporting the position of its handle: {AGAIN}.")

    def handle_state(self, data: bytes) -> None:
        """Process a report of the device state.

        Raises
        ------
        DeviceFault
            If the stick cannot play forces any longer, though it could before.
        """
        report = self._layout.state
        if report is None:
            return
        try:
            state = decode(report, data)
        except ReportError:  # truncated
            return
        ruled_out = {fault for fault, (usage, wanted) in _CONDITIONS.items() if state.get(usage) == wanted}
        lost = [fault for fault in _CONDITIONS if fault in self._ruled_out - ruled_out]
        if lost and time.perf_counter() > self._settled:
            raise DeviceFault(
                f"the stick reports that it {' and '.join(lost)}: check its switches and its supply, and start again."
            )
        self._ruled_out |= ruled_out

    # --- requests -----------------------------------------------------------------------------------------------------

    def _position(self) -> Sample | None:
        data = self._request_report(self._layout.report)
        return None if data is None else self._layout.sample(data, time.perf_counter())

    def _request_state(self) -> bool:
        """Request the state; return True if there was an answer."""
        data = None if self._layout.state is None else self._request_report(self._layout.state)
        if data is not None:
            self.handle_state(data)
        return data is not None

    def _request_report(self, report: Report) -> bytes | None:
        """Request an input report; return None if the stick does not send it, or sends another one."""
        with contextlib.suppress(TransferError):
            data = self._transport.get_input(report.id, report.length)
            if len(data) >= report.length and (not report.id or data[0] == report.id):
                return data
        return None


def _time_asleep() -> float:
    """Return the time that the computer was suspended since boot [s], 0 if unknown."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
