"""Loop of a run: compiled for devices with a port, in Python with the same kernels for all others."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from haptics.clock import Clock, WallClock
from haptics.device import DEAD_MAN_BUTTON, Device, State
from haptics.errors import DeviceFault
from haptics.ports import Port, port_of
from haptics.rendering.complaints import complaint
from haptics.rendering.envelope import Limits
from haptics.rendering.rendering import Rendering
from haptics.servo.loop_kernels import (
    DEVICE_FAULT,
    FAULT_AFTER,
    GOES_ON,
    NEVER,
    NO_SAMPLES,
    PORT,
    due_now,
    end_of_tick,
    render_next,
    run_ticks,
)
from haptics.servo.loop_record import BUTTON, NO_KEY, new_record
from haptics.servo.supervision import APPLICATION_LOST, STOPPED, Supervision
from haptics.servo.system_kernels import AVAILABLE
from haptics.trace import Trace

AT_ONCE = 1024
"""Maximum number of ticks in simulated time between two callbacks; a fraction of the trace capacity."""

Between = Callable[[], int | None]
"""Callback of a run in simulated time.

It returns the number of ticks until the next call, or None for the maximum `AT_ONCE`.
"""


class End(StrEnum):
    """Reason for the end of a run, apart from a fault."""

    COMPLETED = "completed"
    STOPPED = "stopped"
    APPLICATION_LOST = "application lost"


END_REASONS = {0: End.COMPLETED, STOPPED: End.STOPPED, APPLICATION_LOST: End.APPLICATION_LOST}
"""Reasons by the numbers that the kernels return."""

_NUMBERS: dict[End | None, int] = {None: 0, **{end: number for number, end in END_REASONS.items()}}


class Supervisor(Protocol):
    """Callback at the start of every tick; must return within microseconds."""

    def __call__(self) -> End | None:
        """Return the reason to end the run now, or None."""
        ...


class Own(NamedTuple):
    """Callbacks of the caller during a run; see `haptics.servo.servo.Servo`."""

    supervisor: Supervisor | None = None
    before_tick: Callable[[Rendering], None] | None = None
    key_held: Callable[[], bool] | None = None


class Loop:
    """Tick loop of a run on an open device.

    Parameters
    ----------
    device, rendering, trace, clock, limits
        See `haptics.servo.servo.Servo`.
    supervision : Supervision
        Watched processes and control messages.
    own : Own
        Callbacks of the caller.

    Attributes
    ----------
    compiled : bool
        Whether the last run used the compiled loop.
    noticed_ns : int
        Time at which the end of the run was detected (monotonic clock, ns); 0 before.
    """

    def __init__(
        self,
        device: Device,
        rendering: Rendering,
        trace: Trace,
        clock: Clock,
        limits: Limits,
        supervision: Supervision,
        own: Own,
    ) -> None:
        self._device, self._rendering, self._trace, self._clock = device, rendering, trace, clock
        self.supervision, self._own = supervision, own
        self.compensate: Callable[[float], None] = getattr(device, "compensate", _nothing_to_make_up_for)
        self.compiled = False
        self.noticed_ns = 0
        self._record = new_record(clock.period, device.spec, limits)
        self._channels = int(self._record["channels"][0])
        self._core = rendering.core

    @property
    def tick(self) -> int:
        """Number of the present or last tick."""
        return int(self._record["tick"][0])

    def publish(self, parameters: NDArray[Any], version: int) -> None:
        """Apply a (1,) record of dtype `haptics.elements.kernels.PARAMETERS` from the next tick on."""
        self.supervision.publish(parameters, version)

    def stop(self) -> None:
        """End the run at the next tick; may be called from another thread or a signal handler."""
        self.supervision.stop()

    def notice(self) -> None:
        """Record the time at which the end of the run was detected, unless it is already recorded."""
        self.noticed_ns = self.noticed_ns or time.monotonic_ns()

    def asked(self) -> int:
        """Return the number of the reason to end the run now (`END_REASONS`), or 0."""
        own = _NUMBERS[self._own.supervisor()] if self._own.supervisor is not None else 0
        return own or self.supervision.why_to_end(self._record)

    def warm_up(self) -> None:
        """Compile the code of a tick and touch its memory, without accessing the device or changing any state."""
        loop, core, slots = self._record.copy(), self._core.copy(), np.zeros_like(self._trace.slots[:1])
        words = core.view(np.int64)
        self.supervision.warm_up(loop, core, words)
        ports, count = np.zeros(1, PORT), np.zeros(1, np.int64)
        if self._may_be_compiled and hasattr(type(self._device), "port"):
            of_run = loop, core, words, ports, ports, self._trace.slots, count
            run_ticks(*of_run, **self.supervision.arrays, most=0)
        due_now(loop, core, 0.0, 0)  # an open device may turn out to have no port
        render_next(loop, core, ports, slots, 0.0, 0.0, 0, False, False)
        end_of_tick(loop, core, slots, count, 0.0, 0.0)

    def prepare(self, count: int | None) -> None:
        """Prepare a run of `count` ticks, or without an end if None."""
        loop = self._record
        self.noticed_ns = 0
        loop["fading"] = NEVER if count is None else count - min(int(loop["brake_ticks"][0]), count // 2)
        loop["last"] = NEVER if count is None else count
        for name in ("tick", "end", "noticed_ns", "bad_ticks"):
            loop[name] = 0
        loop["opening"] = 1.0
        self.supervision.prepare(loop)

    def run(self, between: Between | None = None) -> End:
        """Start the clock and run to the end.

        Parameters
        ----------
        between : callable, optional
            Called in simulated time after at most `AT_ONCE` ticks, and at the end of every run.

        Raises
        ------
        DeviceFault
            If there was no usable sample for too long. Errors of the device are passed on.
        """
        loop, clock = self._record, self._clock
        loop["count"] = self._trace.count
        clock.start()
        self._trace.origin[:] = clock.origin_ns
        port = port_of(self._device) if self._may_be_compiled else None
        self.compiled = port is not None
        try:
            if port is None:
                self._run_in_python(between)
            else:
                self._run_without_python(port, between)
        finally:
            self.noticed_ns = self.noticed_ns or int(loop["noticed_ns"][0])
        return END_REASONS[int(loop["end"][0])]

    # --- in Python ----------------------------------------------------------------------------------------------------

    def _run_in_python(self, between: Between | None) -> None:
        loop, clock = self._record, self._clock
        ticks, lasts, ports, look = loop["tick"], loop["last"], np.zeros(1, PORT), AT_ONCE
        while ticks[0] < lasts[0]:
            late = clock.wait(int(ticks[0]))
            asked = 0 if loop["end"][0] else self.asked()
            if asked:
                self.notice()
            if not due_now(loop, self._core, late, asked):
                break
            clock.tick = int(ticks[0])
            self.supervision.take_settings(self._core, self._rendering.words)
            if self._own.before_tick is not None:
                self._own.before_tick(self._rendering)
            self._tick(ports)
            ticks[0] += 1
            if between is not None and ticks[0] >= look and not isinstance(clock, WallClock):
                look = int(ticks[0]) + (between() or AT_ONCE)
        if between is not None:
            between()

    def _tick(self, ports: NDArray[Any]) -> None:
        """Read, render, write, record."""
        clock, trace, loop, core, port = self._clock, self._trace, self._record, self._core, ports[0]
        marker, closed = self.supervision.marker, self.supervision.gate_closed
        begun = clock.elapsed()
        state = self._device.read()
        now = clock.time
        age = now + (clock.elapsed() - begun) - state.time  # includes the duration of the read
        port["position"], port["velocity"], port["force"] = state.position, state.velocity, state.force
        port["hand_force"], port["buttons"] = state.hand_force, state.buttons
        port["channels"][: self._channels] = math.nan if state.channels is None else state.channels
        start = now + loop["late"][0]
        if render_next(loop, core, ports, trace.slots, now, age, marker, closed, self._released(state)):
            self.compensate(float(port["assistance"]))
            self._device.write(self._rendering.command)
        written = clock.elapsed() - start
        if not end_of_tick(loop, core, trace.slots, trace.counter, written, clock.elapsed() - start):
            raise self._no_samples()

    def _released(self, state: State) -> bool:
        """Return True if there is a dead-man's switch and it is not held."""
        kind = self._record["dead_man"][0]
        if kind == NO_KEY:
            return False
        if kind == BUTTON:
            return not state.buttons & DEAD_MAN_BUTTON
        return not (self._own.key_held() if self._own.key_held is not None else self.supervision.key_is_held())

    # --- compiled -----------------------------------------------------------------------------------------------------

    @property
    def _may_be_compiled(self) -> bool:
        """Whether the run can be compiled, as far as it does not depend on the device."""
        asks = any(each is not None for each in self._own)
        return AVAILABLE and not asks and type(self._clock) in (Clock, WallClock)

    def ready(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None:
        """Start the clock of a run in simulated time whose ticks are made by `haptics.servo.offline.kernels`.

        Returns
        -------
        (loop, core, ports), each a (1,) structured array
            Records of the run, the rendering and the device; None if the run needs Python in every tick.
        """
        port = port_of(self._device) if self._may_be_compiled else None
        if port is None or not port.take or not port.give or isinstance(self._clock, WallClock):
            return None
        self._clock.start()
        self._record["count"] = 0
        return self._record, self._core, self._connect(port)

    def _connect(self, port: Port) -> NDArray[Any]:
        """Set the device access of the loop; return the device's record, (1,) of dtype `PORT`."""
        loop = self._record
        loop["take"], loop["give"], loop["wake"] = port.take, port.give, port.wake
        return port.record.view(np.uint8)[: PORT.itemsize].view(PORT)

    def _run_without_python(self, port: Port, between: Between | None) -> None:
        """Run the compiled loop until the end or a fault, with calls of `between` in simulated time."""
        loop, trace, supervision, clock = self._record, self._trace, self.supervision, self._clock
        loop["live"] = live = isinstance(clock, WallClock)
        if isinstance(clock, WallClock):
            loop["origin_ns"], loop["spin_ns"] = clock.origin_ns[0], clock.spin_ns
        ports = self._connect(port)
        samples = ports if port.take else np.zeros(1, PORT)
        of_run = loop, self._core, self._rendering.words, ports, samples, trace.slots, trace.counter
        outcome, most = GOES_ON, NEVER if live else AT_ONCE
        while outcome == GOES_ON:
            outcome = run_ticks(*of_run, **supervision.arrays, most=most)
            clock.tick = self.tick
            wish = between() if between is not None else None
            most = NEVER if live else min(wish or AT_ONCE, AT_ONCE)
        if outcome == NO_SAMPLES:
            raise self._no_samples()
        if outcome == DEVICE_FAULT:
            self._device.read()
            self._device.write(self._rendering.command)
            raise DeviceFault("it reported a fault without saying which: switch it off and on, and start again.")

    def _no_samples(self) -> DeviceFault:
        """Return the fault after `FAULT_AFTER` without a usable sample."""
        trace, limit = self._trace, float(self._core["max_following_error"][0])
        begun, now = trace.count - int(self._record["bad_ticks"][0]), trace.count - 1
        first, last = (trace.slots[number % trace.capacity] for number in (begun, now))
        return DeviceFault(complaint(first, last, limit, FAULT_AFTER))


def _nothing_to_make_up_for(share: float) -> None:
    """Replace `haptics.device.Compensating.compensate` for devices without compensation."""
