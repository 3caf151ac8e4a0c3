"""The loop of a run: compiled for devices with a port, in Python around the same kernels for all others."""

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
"""Ticks without a clock between two looks at who follows the trace, at most; a part of what the trace holds."""

Between = Callable[[], int | None]
"""Called in a run without a clock; returns after how many ticks to call again, None for `AT_ONCE`, the most."""


class End(StrEnum):
    """Why a run ended, apart from a fault."""

    COMPLETED = "completed"
    STOPPED = "stopped"
    APPLICATION_LOST = "application lost"


END_REASONS = {0: End.COMPLETED, STOPPED: End.STOPPED, APPLICATION_LOST: End.APPLICATION_LOST}
"""What the kernels' numbers for the end of a run mean."""

_NUMBERS: dict[End | None, int] = {None: 0, **{end: number for number, end in END_REASONS.items()}}


class Supervisor(Protocol):
    """What the servo asks at the top of every tick; it must answer within microseconds."""

    def __call__(self) -> End | None:
        """Return why the run must end now, or None."""
        ...


class Own(NamedTuple):
    """Callables of the caller that a run has to ask, as `haptics.servo.servo.Servo` takes them."""

    supervisor: Supervisor | None = None
    before_tick: Callable[[Rendering], None] | None = None
    key_held: Callable[[], bool] | None = None


class Loop:
    """The ticks of a run on an opened device.

    Parameters
    ----------
    device, rendering, trace, clock, limits
        As `haptics.servo.servo.Servo` has them.
    supervision : Supervision
        Whom to watch and what is said meanwhile.
    own : Own
        Callables of one's own.

    Attributes
    ----------
    compiled : bool
        Whether the last run was one without Python.
    noticed_ns : int
        When its end was noticed (monotonic clock, ns); 0 before.
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
        """The tick that is under way, or was last."""
        return int(self._record["tick"][0])

    def publish(self, parameters: NDArray[Any], version: int) -> None:
        """Put a (1,) record of dtype `haptics.elements.kernels.PARAMETERS` in force from the next tick."""
        self.supervision.publish(parameters, version)

    def stop(self) -> None:
        """End the run at the next tick; may be called from another thread or a signal handler."""
        self.supervision.stop()

    def notice(self) -> None:
        """Take note that the run ends, unless that was noticed before."""
        self.noticed_ns = self.noticed_ns or time.monotonic_ns()

    def asked(self) -> int:
        """Return the number of why the run is to end now (`END_REASONS`), or 0."""
        own = _NUMBERS[self._own.supervisor()] if self._own.supervisor is not None else 0
        return own or self.supervision.why_to_end(self._record)

    def warm_up(self) -> None:
        """Compile and touch what a tick needs; neither the device nor the state of anything is involved."""
        loop, core, slots = self._record.copy(), self._core.copy(), np.zeros_like(self._trace.slots[:1])
        words = core.view(np.int64)
        self.supervision.warm_up(loop, core, words)
        ports, count = np.zeros(1, PORT), np.zeros(1, np.int64)
        if self._may_be_compiled and hasattr(type(self._device), "port"):
            of_run = loop, core, words, ports, ports, self._trace.slots, count
            run_ticks(*of_run, **self.supervision.arrays, most=0)
        due_now(loop, core, 0.0, 0)  # once it is open it may say that it has no port
        render_next(loop, core, ports, slots, 0.0, 0.0, 0, False, False)
        end_of_tick(loop, core, slots, count, 0.0, 0.0)

    def prepare(self, count: int | None) -> None:
        """Prepare a run of so many ticks, or without an end."""
        loop = self._record
        self.noticed_ns = 0
        loop["fading"] = NEVER if count is None else count - min(int(loop["brake_ticks"][0]), count // 2)
        loop["last"] = NEVER if count is None else count
        for name in ("tick", "end", "noticed_ns", "bad_ticks"):
            loop[name] = 0
        loop["opening"] = 1.0
        self.supervision.prepare(loop)

    def run(self, between: Between | None = None) -> End:
        """Make now the instant of tick 0 and run to the end.

        Parameters
        ----------
        between : callable, optional
            Called every `AT_ONCE` ticks of a run without a clock, or as soon as it wishes, and at the end.

        Raises
        ------
        DeviceFault
            If there was no usable sample for too long. Whatever the device raises comes out as it is.
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
        age = now + (clock.elapsed() - begun) - state.time  # a read that takes its time makes no young sample
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
        """Tell whether the dead-man, if there is one, is not held."""
        kind = self._record["dead_man"][0]
        if kind == NO_KEY:
            return False
        if kind == BUTTON:
            return not state.buttons & DEAD_MAN_BUTTON
        return not (self._own.key_held() if self._own.key_held is not None else self.supervision.key_is_held())

    # --- without Python -----------------------------------------------------------------------------------------------

    @property
    def _may_be_compiled(self) -> bool:
        """Whether nothing but the device could keep Python in the run."""
        asks = any(each is not None for each in self._own)
        return AVAILABLE and not asks and type(self._clock) in (Clock, WallClock)

    def ready(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None:
        """Make now the instant of tick 0 of a run without a clock, whose ticks `haptics.servo.offline.kernels` makes.

        Returns
        -------
        (loop, core, ports), each a (1,) structured array
            The records of the run, the rendering and the device; None where Python must have its part in every tick.
        """
        port = port_of(self._device) if self._may_be_compiled else None
        if port is None or not port.take or not port.give or isinstance(self._clock, WallClock):
            return None
        self._clock.start()
        self._record["count"] = 0
        return self._record, self._core, self._connect(port)

    def _connect(self, port: Port) -> NDArray[Any]:
        """Tell the loop how it reaches the device; return the beginning of its record, (1,) of dtype `PORT`."""
        loop = self._record
        loop["take"], loop["give"], loop["wake"] = port.take, port.give, port.wake
        return port.record.view(np.uint8)[: PORT.itemsize].view(PORT)

    def _run_without_python(self, port: Port, between: Between | None) -> None:
        """Run the compiled loop; it comes back at the end, for a fault, and without a clock when `between` wishes."""
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
        """Return what is said when there has been no usable sample for `FAULT_AFTER`."""
        trace, limit = self._trace, float(self._core["max_following_error"][0])
        begun, now = trace.count - int(self._record["bad_ticks"][0]), trace.count - 1
        first, last = (trace.slots[number % trace.capacity] for number in (begun, now))
        return DeviceFault(complaint(first, last, limit, FAULT_AFTER))


def _nothing_to_make_up_for(share: float) -> None:
    """Stand in for `haptics.device.Compensating.compensate` of a device that has none."""
