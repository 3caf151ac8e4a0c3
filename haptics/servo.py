"""The haptic loop: read, render, limit, write, record, wait; once per period, in one direction.

A deadline is an absolute instant. A tick that starts or ends late is flagged; a deadline missed whole is skipped and
counted, never caught up in a burst. However the loop ends, the device gets its safe output and is closed.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from haptics.clock import Clock, WallClock
from haptics.device import Device
from haptics.elements import Element
from haptics.envelope import NOT_FINITE, STALE, Limits
from haptics.errors import DeviceFault, HapticError
from haptics.rendering import Rendering
from haptics.trace import Status, Trace

_STARTED_LATE = int(Status.STARTED_LATE)
_ENDED_LATE = int(Status.ENDED_LATE)
_AFTER_SKIP = int(Status.AFTER_SKIP)
_UNUSABLE = NOT_FINITE | STALE

LATE_FRACTION = 0.5
"""A tick that starts later than this part of a period after its deadline is flagged as late."""

FAULT_AFTER = 0.1
"""Without a usable sample for this long [s] the device counts as failed."""


class End(StrEnum):
    """Why a run ended, apart from a fault."""

    COMPLETED = "completed"
    STOPPED = "stopped"
    APPLICATION_LOST = "application lost"


class Supervisor(Protocol):
    """What the servo asks at the top of every tick; it must answer within microseconds."""

    def __call__(self) -> End | None:
        """Return why the run must end now, or None."""
        ...


class Servo:
    """Runs one element on one device.

    Parameters
    ----------
    device : Device
        Not yet opened.
    element : Element
        Its ``period`` is the period of the loop.
    trace : Trace
        Where each tick is recorded.
    clock : Clock, optional
        `WallClock` by default; a plain `Clock` runs as fast as possible.
    limits : Limits, optional
        The envelope; the device's own limits by default.
    supervisor : callable, optional
        Asked at the top of every tick.
    before_tick : callable, optional
        Called with the rendering at the top of every tick, for instance to take over new settings.

    Attributes
    ----------
    noticed_ns, safe_output_ns : int
        When the end of the run was noticed, and when the device had its safe output (monotonic clock, ns).

    Raises
    ------
    CausalityError, ConfigurationError
        If element and device do not go together: before anything is opened.
    """

    def __init__(
        self,
        device: Device,
        element: Element,
        trace: Trace,
        *,
        clock: Clock | None = None,
        limits: Limits | None = None,
        supervisor: Supervisor | None = None,
        before_tick: Callable[[Rendering], None] | None = None,
    ) -> None:
        self.device = device
        self.rendering = Rendering(element, device.spec, limits)
        self.trace = trace
        self.period = element.period
        self._clock = clock or WallClock(element.period)
        self._supervisor = supervisor
        self._before_tick = before_tick
        self.noticed_ns = 0
        self.safe_output_ns = 0
        self._stopping = False
        self._bad_ticks = 0
        self._count = trace.count
        self._tick_time = trace.slots["tick_time"]
        self._status = trace.slots["status"]

    def warm_up(self) -> None:
        """Compile and touch what a tick needs; the device is not involved."""
        self.rendering.warm_up(self.trace.slots)

    def run(self, duration: float | None = None, opened: Callable[[], None] | None = None) -> End:
        """Open the device, run for `duration` [s] (None: until stopped) and close it.

        Parameters
        ----------
        duration : float or None
            Length of the run [s].
        opened : callable, optional
            Called once when the device is open, before the first tick.

        Returns
        -------
        End
            Why the run ended.

        Raises
        ------
        DeviceNotFoundError, DeviceOpenError
            If the device could not be opened.
        DeviceFault
            If anything failed after that; it carries the last rows of the trace. The safe output has been written if
            the device still took it.
        """
        self.warm_up()
        self.device.open()
        try:
            if opened is not None:
                opened()
            end = self._loop(None if duration is None else round(duration / self.period))
        except Exception as error:
            # Whatever it was, a driver's OSError or a mistake in somebody's law: the hand comes first, words later.
            with contextlib.suppress(Exception):
                self._leave_safe()
            rows = self.trace.since(max(self.trace.count - 1000, 0))
            if isinstance(error, HapticError):
                raise DeviceFault(str(error), rows) from error
            name = self.device.spec.name
            raise DeviceFault(f"{name} failed with {type(error).__name__}: {error}", rows) from error
        except BaseException:
            self._leave_safe()
            raise
        self._leave_safe()
        return end

    def stop(self) -> None:
        """End the run at the next tick; may be called from another thread or a signal handler."""
        self._stopping = True

    def _leave_safe(self) -> None:
        """Write the safe output and close, each even if the other fails."""
        self.noticed_ns = time.monotonic_ns()
        safe_output = self.rendering.safe_output
        try:
            if safe_output is not None:
                self.device.write(safe_output)
            self.safe_output_ns = time.monotonic_ns()
        finally:
            self.device.close()

    def _loop(self, count: int | None) -> End:
        clock, tick = self._clock, 0
        clock.start()
        while count is None or tick < count:
            late = clock.wait(tick)
            flags = 0
            if late >= self.period:
                missed = int(late / self.period)
                tick, late, flags = tick + missed, late - missed * self.period, _AFTER_SKIP
                clock.tick = tick
                if count is not None and tick >= count:
                    break
            if (end := self._ending()) is not None:
                return end
            self._tick(tick, late, flags)
            tick += 1
        return End.COMPLETED

    def _ending(self) -> End | None:
        if self._stopping:
            return End.STOPPED
        return self._supervisor() if self._supervisor is not None else None

    def _tick(self, tick: int, late: float, flags: int) -> None:
        clock, trace, rendering = self._clock, self.trace, self.rendering
        if self._before_tick is not None:
            self._before_tick(rendering)
        state = self.device.read()
        now, slot = clock.time, self._count % trace.capacity
        if late > LATE_FRACTION * self.period:
            flags |= _STARTED_LATE
        age = now - state.time
        if age < 0.0:  # taken within this tick, or by another clock: such a time says nothing
            age = 0.0 if age > -self.period else math.inf
        command = rendering.tick(state, age, trace.slots, slot, (tick, now, late, flags))
        if not math.isnan(command[0]):  # nothing to hold yet, see Rendering.tick
            self.device.write(command)
        taken = clock.elapsed() - now - late
        self._tick_time[slot] = taken
        if late + taken > self.period:
            self._status[slot] |= _ENDED_LATE
        self._count += 1
        trace.publish(self._count)
        if self._bad_ticks or rendering.status & _UNUSABLE:
            self._watch_samples(rendering.status)

    def _watch_samples(self, status: int) -> None:
        """Raise `DeviceFault` when there has been no usable sample for `FAULT_AFTER`."""
        self._bad_ticks = self._bad_ticks + 1 if status & _UNUSABLE else 0
        if self._bad_ticks * self.period > FAULT_AFTER:
            kind = "not a finite number" if status & NOT_FINITE else "too old"
            raise DeviceFault(
                f"{self.device.spec.name} gave no usable sample for {FAULT_AFTER * 1e3:.0f} ms (the last one, or what "
                f"the element made of it, was {kind}): check its connection and start again."
            )
