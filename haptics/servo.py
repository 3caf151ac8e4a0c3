"""The haptic loop: read, render, limit, write, record, wait; once per period, in one direction.

A deadline is an absolute instant. A tick that starts or ends late is flagged; a deadline missed whole is skipped and
counted, never caught up in a burst. Before an orderly end the output fades out; however the loop ends, the device gets
its safe output and is closed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from haptics.clock import Clock, WallClock
from haptics.device import DEAD_MAN_BUTTON, Causality, Device, State
from haptics.envelope import ASTRAY, FADE_OUT, IMPLAUSIBLE, NOT_FINITE, UNUSABLE, Limits
from haptics.errors import ConfigurationError, DeviceFault, HapticError, OpeningCancelled
from haptics.programs import Program
from haptics.rendering import Rendering
from haptics.trace import Permission, Status, Trace
from haptics.waiting import cancelled_by

_STARTED_LATE = int(Status.STARTED_LATE)
_ENDED_LATE = int(Status.ENDED_LATE)
_AFTER_SKIP = int(Status.AFTER_SKIP)
_RELEASED = int(Permission.RELEASED)
_TOLD_TO_END = int(Permission.ENDING)

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
    """Runs a program on a device, an element or a motion, and those that come after it.

    Parameters
    ----------
    device : Device
        Not yet opened.
    program : Element or Motion
        What it begins with. Its ``period`` is the period of the loop.
    trace : Trace
        Where each tick is recorded.
    clock : Clock, optional
        `WallClock` by default; a plain `Clock` runs as fast as possible.
    limits : Limits, optional
        The envelope; the device's own limits by default.
    supervisor : callable, optional
        Asked before the device is opened, while `haptics.waiting.pause` waits there, and at the top of every tick.
    before_tick : callable, optional
        Called with the rendering at the top of every tick, for instance to take over new settings.
    key_held : callable, optional
        Tells whether the person holds the dead-man's key; needed where the limits ask for it.
    marker : (1,) int array, optional
        Goes into the row of every tick, as it is at the tick's top.

    Attributes
    ----------
    noticed_ns, safe_output_ns : int
        When the end of the run was noticed, and when the device had its safe output (monotonic clock, ns).

    Raises
    ------
    CausalityError, ConfigurationError
        If element and device do not go together, or a key is to be held that does not exist: before anything is opened.
    """

    def __init__(
        self,
        device: Device,
        program: Program,
        trace: Trace,
        *,
        clock: Clock | None = None,
        limits: Limits | None = None,
        supervisor: Supervisor | None = None,
        before_tick: Callable[[Rendering], None] | None = None,
        key_held: Callable[[], bool] | None = None,
        marker: NDArray[np.int64] | None = None,
    ) -> None:
        limits = limits or Limits.of(device.spec)
        self.device = device
        self.rendering = Rendering(program, device.spec, limits)
        self.trace = trace
        self.period = program.period
        self._clock = clock or WallClock(program.period)
        self._supervisor = supervisor
        self._before_tick = before_tick
        self._held = _dead_man(limits.dead_man, key_held)
        self._compensate = getattr(device, "compensate", _nothing_to_make_up_for)
        self.noticed_ns = 0
        self.safe_output_ns = 0
        self._stopping = False
        self._fade_ticks = self._ticks_in(FADE_OUT)
        self._brake_ticks = self._fade_ticks
        if device.spec.causality is Causality.ADMITTANCE:  # a reference brakes by its limits
            self._brake_ticks = max(self._fade_ticks, self._ticks_in(limits.max_speed / limits.max_acceleration))
        self._bad_ticks = self._first_bad = 0
        self._present = 0
        self._count = trace.count
        slots = trace.slots
        self._write_time, self._tick_time = slots["write_time"], slots["tick_time"]
        self._status, self._buttons = slots["status"], slots["buttons"]
        self._markers, self._hand_force = slots["marker"], slots["hand_force"]
        self._marker = np.zeros(1, np.int64) if marker is None else marker

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
            Why the run ended. A run that is to end before its device is open leaves that closed, without a tick; what
            waits in ``open`` with `haptics.waiting.pause` is called off.

        Raises
        ------
        DeviceNotFoundError, DeviceOpenError
            If the device could not be opened.
        DeviceFault
            If anything failed after that; it carries the last rows of the trace. The safe output has been written if
            the device still took it.
        """
        self.warm_up()
        self.rendering.begin()
        self.noticed_ns = self.safe_output_ns = self._bad_ticks = 0
        reason = self._open()
        if reason is not None:
            return reason
        try:
            if opened is not None:
                opened()
            end = self._loop(None if duration is None else round(duration / self.period))
        except Exception as error:
            # Whatever it was, a driver's OSError or a mistake in somebody's law: the hand comes first, words later.
            unsafe = None
            try:
                self._leave_safe()
            except Exception as another:
                unsafe = another
            raise self._fault(error, unsafe) from error
        except BaseException:
            self._leave_safe()
            raise
        try:
            self._leave_safe()
        except Exception as error:
            raise self._fault(error) from error
        return end

    def _open(self) -> End | None:
        """Open the device; return why it was not, where the run is to end before it has begun."""
        reason = self._reason_to_end()
        if reason is not None:
            return reason
        try:
            with cancelled_by(lambda: self._reason_to_end() is not None):
                self.device.open()
        except OpeningCancelled:
            return self._reason_to_end() or End.STOPPED
        return None

    def stop(self) -> None:
        """End the run at the next tick; may be called from another thread or a signal handler."""
        self._stopping = True

    def _fault(self, error: Exception, unsafe: Exception | None = None) -> DeviceFault:
        """Return what is said about `error`: which device, at which tick, what; and why it was not left safe then."""
        message = f"{self.device.spec.name} failed at tick {self._present}: {_in_words(error)}"
        if unsafe is not None and _in_words(unsafe) not in message:
            message = f"{message.removesuffix('.')}. It could not be left safe: {_in_words(unsafe)}"
        return DeviceFault(message, self.trace.since(max(self.trace.count - 1000, 0)))

    def _ticks_in(self, duration: float) -> int:
        """Return the ticks that `duration` [s] takes, and one more for the rounding."""
        return math.ceil(duration / self.period * (1 - 1e-9)) + 1

    def _leave_safe(self) -> None:
        """Write the safe output, a period between its steps, and close; each even if the other fails."""
        self.noticed_ns = self.noticed_ns or time.monotonic_ns()
        failure = None
        try:
            self._compensate(0.0)
            for step, command in enumerate(self.rendering.safe_outputs):
                if step:
                    self._clock.wait(self._clock.tick + 1)
                try:
                    self.device.write(command)
                    self.safe_output_ns, failure = time.monotonic_ns(), None
                except Exception as error:  # the next one may get through
                    failure = error
        finally:
            self.device.close()
        if failure is not None:
            raise failure

    def _loop(self, count: int | None) -> End:
        clock, tick, end = self._clock, 0, End.COMPLETED
        fading = math.inf if count is None else count - min(self._brake_ticks, count // 2)
        last = math.inf if count is None else count
        clock.start()
        self.trace.origin[:] = clock.origin_ns
        while tick < last:
            late = clock.wait(tick)
            flags = 0
            if late >= self.period:
                missed = int(late / self.period)
                tick, late, flags = tick + missed, late - missed * self.period, _AFTER_SKIP
                clock.tick = tick
                if tick >= last:
                    break
            if end is End.COMPLETED and (reason := self._reason_to_end()) is not None:
                end, fading, last = reason, min(fading, tick), min(last, tick + self._brake_ticks)
                self.noticed_ns = time.monotonic_ns()
            if end is not End.COMPLETED and tick >= fading + self._fade_ticks and self.rendering.at_rest:
                break
            self._present = tick
            self._tick(tick, late, flags, _TOLD_TO_END if tick >= fading else 0)
            tick += 1
        return end

    def _reason_to_end(self) -> End | None:
        if self._stopping:
            return End.STOPPED
        return self._supervisor() if self._supervisor is not None else None

    def _tick(self, tick: int, late: float, flags: int, permission: int) -> None:
        clock, trace, rendering = self._clock, self.trace, self.rendering
        if self._before_tick is not None:
            self._before_tick(rendering)
        marker, begun = self._marker[0], clock.elapsed()
        state = self.device.read()
        now, slot = clock.time, self._count % trace.capacity
        if late > LATE_FRACTION * self.period:
            flags |= _STARTED_LATE
        age = now + (clock.elapsed() - begun) - state.time  # a read that takes its time makes no young sample
        if age < 0.0:  # taken within this tick, or by another clock: such a time says nothing
            age = 0.0 if age > -self.period else math.inf
        if self._held is not None and not self._held(state):
            permission |= _RELEASED
        command = rendering.tick(state, age, trace.slots, slot, (tick, now, late, flags), permission)
        if not math.isnan(command[0]):  # nothing to hold yet, see Rendering.tick
            self._compensate(rendering.assistance)
            self.device.write(command)
        start = now + late
        self._write_time[slot] = clock.elapsed() - start
        self._buttons[slot], self._markers[slot], self._hand_force[slot] = state.buttons, marker, state.hand_force
        self._tick_time[slot] = taken = clock.elapsed() - start
        if late + taken > self.period:
            self._status[slot] |= _ENDED_LATE
        self._count += 1
        trace.publish(self._count)
        if self._bad_ticks or rendering.status & UNUSABLE:
            self._watch_samples(rendering.status)

    def _watch_samples(self, status: int) -> None:
        """Raise `DeviceFault` when there has been no usable sample for `FAULT_AFTER`."""
        if not status & UNUSABLE:
            self._bad_ticks = 0
            return
        if not self._bad_ticks:
            self._first_bad = self._present
        self._bad_ticks += 1
        if (self._present - self._first_bad + 1) * self.period > FAULT_AFTER:
            if status & ASTRAY:
                row = self.trace.slots[(self._count - self._bad_ticks) % self.trace.capacity]
                raise DeviceFault(
                    f"it did not follow its motion at tick {self._first_bad}: the end effector was "
                    f"{1e3 * math.hypot(*row['displacement']):.0f} mm from where it should be, at "
                    f"{math.hypot(*row['velocity']):.2f} m/s. Let go of it, see that nothing is in its way, or choose "
                    "slower motions."
                )
            raise DeviceFault(
                f"no usable sample since tick {self._first_bad}, for {FAULT_AFTER * 1e3:.0f} ms (the last one, or what "
                f"the element made of it, {_complaint(status)}): check its connection and start again."
            )


def _nothing_to_make_up_for(share: float) -> None:
    """Stand in for `haptics.device.Compensating.compensate` of a device that has none."""


def _in_words(error: Exception) -> str:
    """Return what an error says, and its kind if it is none of ours."""
    return str(error) if isinstance(error, HapticError) else f"{type(error).__name__}: {error}"


def _complaint(status: int) -> str:
    """Say what was wrong with the sample of a tick."""
    if status & NOT_FINITE:
        return "was not a finite number"
    if status & IMPLAUSIBLE:
        return "showed an implausible jump in position, or a force beyond the range of its sensor"
    return "was too old"


def _dead_man(kind: str, key_held: Callable[[], bool] | None) -> Callable[[State], bool] | None:
    """Return what tells whether the dead-man is held, None if there is none."""
    if kind == "none":
        return None
    if kind == "button":
        return lambda state: state.buttons & DEAD_MAN_BUTTON != 0
    if key_held is None:
        raise ConfigurationError(
            "envelope.dead_man = 'key': there is no window whose key could be held. Leave --headless out, or choose "
            "'button' where the device has one."
        )
    return lambda state: key_held()
