"""The haptic loop: read, render, limit, write, record, wait; once per period, in one direction.

A deadline is an absolute instant. A tick that starts or ends late is flagged; a deadline missed whole is skipped and
counted, never caught up in a burst. Before an orderly end the output fades out; however the loop ends, the device gets
its safe output and is closed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from haptics.clock import Clock, WallClock, cancelled_by
from haptics.device import Device
from haptics.errors import ConfigurationError, DeviceFault, HapticError, OpeningCancelled
from haptics.rendering.envelope import Limits
from haptics.rendering.programs import Program
from haptics.rendering.rendering import Rendering
from haptics.servo.loop import END_REASONS, Between, End, Loop, Own, Supervisor
from haptics.servo.supervision import Supervision
from haptics.trace import Trace


class Servo:
    """Runs a program on a device, an element or a motion, and those that come after it.

    A device with a port (`haptics.ports`) is run without Python, any other one by a loop in Python around the same
    kernels; so is any device where a callable of one's own is to be asked at every tick.

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
    supervision : Supervision, optional
        The application to watch, and what it says: to stop, new settings, the dead-man's key.
    supervisor : callable, optional
        Asked before the device is opened, while `haptics.clock.pause` waits there, and at the top of every tick.
    before_tick : callable, optional
        Called with the rendering at the top of every tick, for instance to take over new settings.
    key_held : callable, optional
        Tells whether the person holds the dead-man's key; needed where the limits ask for it and there is no
        `supervision`.

    Attributes
    ----------
    safe_output_ns : int
        When the device had its safe output (monotonic clock, ns).

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
        supervision: Supervision | None = None,
        supervisor: Supervisor | None = None,
        before_tick: Callable[[Rendering], None] | None = None,
        key_held: Callable[[], bool] | None = None,
    ) -> None:
        limits = limits or Limits.of(device.spec)
        self.device = device
        self.rendering = Rendering(program, device.spec, limits)
        self.trace = trace
        self.period = program.period
        if limits.dead_man == "key" and key_held is None and supervision is None:
            raise ConfigurationError(
                "envelope.dead_man = 'key': there is no window whose key could be held. Leave --headless out, or "
                "choose 'button' where the device has one."
            )
        self._clock = clock or WallClock(program.period)
        if not math.isclose(self._clock.period, program.period):
            raise ConfigurationError(
                f"period = {program.period:g} s of the {program.model} does not go with a clock of "
                f"{self._clock.period:g} s: build both with the same period."
            )
        own = Own(supervisor, before_tick, key_held)
        self._loop = Loop(device, self.rendering, trace, self._clock, limits, supervision or Supervision(), own)
        self.safe_output_ns = 0

    @property
    def noticed_ns(self) -> int:
        """When the end of the run was noticed (monotonic clock, ns); 0 before."""
        return self._loop.noticed_ns

    @property
    def compiled(self) -> bool:
        """Whether the last run was one without Python."""
        return self._loop.compiled

    def warm_up(self) -> None:
        """Compile and touch what a tick needs; the device is not involved."""
        self._loop.warm_up()

    def run(
        self,
        duration: float | None = None,
        opened: Callable[[], None] | None = None,
        between: Between | None = None,
    ) -> End:
        """Open the device, run for `duration` [s] (None: until stopped) and close it.

        Parameters
        ----------
        duration : float or None
            Length of the run [s].
        opened : callable, optional
            Called once when the device is open, before the first tick.
        between : callable, optional
            Called every `haptics.servo.loop.AT_ONCE` ticks of a run without a clock, or sooner if it wishes, for those
            who follow the trace or direct the run (`gate`, `mark`, `take`).

        Returns
        -------
        End
            Why the run ended. A run that is to end before its device is open leaves that closed, without a tick; what
            waits in ``open`` with `haptics.clock.pause` is cancelled.

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
        self.safe_output_ns = 0
        self._loop.prepare(None if duration is None else round(duration / self.period))
        reason = self._open()
        if reason is not None:
            return reason
        try:
            if opened is not None:
                opened()
            end = self._loop.run(between)
        except Exception as error:
            # Whatever it was, a driver's OSError or a mistake in a custom law: first the safe output, then the report.
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

    def ready(self, duration: float) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None:
        """Open the device for the first run, of `duration` [s], whose ticks `haptics.servo.offline` makes.

        It ends with `leave`.

        Returns
        -------
        tuple or None
            See `haptics.servo.loop.Loop.ready`.
        """
        self._loop.prepare(round(duration / self.period))
        self.device.open()
        return self._loop.ready()

    def leave(self) -> None:
        """Leave the device safe, and close it."""
        self._leave_safe()

    def _open(self) -> End | None:
        """Open the device; return why it was not, where the run is to end before it has begun."""
        asked = self._loop.asked()
        if asked:
            return END_REASONS[asked]
        try:
            with cancelled_by(lambda: self._loop.asked() != 0):
                self.device.open()
        except OpeningCancelled:
            return END_REASONS[self._loop.asked()] or End.STOPPED
        return None

    def take(self, program: Program, number: int, version: int) -> None:
        """Go on with another program at the next tick; may be called from another thread.

        Parameters
        ----------
        program : Element or Motion
            What comes next, or other parameters of what there is.
        number : int
            Of the program in the run: the same as before for other parameters, the next one for a new program, which
            begins at its beginning.
        version : int
            By which the recording knows these settings.

        Raises
        ------
        CausalityError, ConfigurationError
            If program and device do not go together; nothing changes then.
        """
        self._loop.publish(self.rendering.prepare(program, number), version)

    def gate(self, closed: bool) -> None:
        """Let the output down, as between two trials, or up again, from the next tick on."""
        self._loop.supervision.gate(closed)

    def mark(self, marker: int) -> None:
        """Let the rows from the next tick on carry `marker`."""
        self._loop.supervision.mark(marker)

    def stop(self) -> None:
        """End the run at the next tick; may be called from another thread or a signal handler."""
        self._loop.stop()

    def _fault(self, error: Exception, unsafe: Exception | None = None) -> DeviceFault:
        """Return what is said about `error`: which device, at which tick, what; and why it was not left safe then."""
        words, why = _in_words(error), getattr(self.device, "explain", str)()
        if why and why not in words:
            words = f"{why} (It was noticed as: {words.removesuffix('.')}.)"
        message = f"{self.device.spec.name} failed at tick {self._loop.tick}: {words}"
        if unsafe is not None and _in_words(unsafe) not in message:
            message = f"{message.removesuffix('.')}. It could not be left safe: {_in_words(unsafe)}"
        return DeviceFault(message, self.trace.since(max(self.trace.count - 1000, 0)))

    def _leave_safe(self) -> None:
        """Write the safe output, a period between its steps, and close; each even if the other fails."""
        self._loop.notice()
        failure = None
        try:
            self._loop.compensate(0.0)
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


def _in_words(error: Exception) -> str:
    """Return what an error says, and its kind if it is none of ours."""
    return str(error) if isinstance(error, HapticError) else f"{type(error).__name__}: {error}"
