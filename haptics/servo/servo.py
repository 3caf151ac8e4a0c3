"""The haptic loop: read, render, limit, write, record, wait; once per period.

Deadlines are absolute. A tick that starts or ends late is flagged. Deadlines that are missed entirely are skipped and
counted, never caught up in a burst. Before a regular end the output fades out. However the loop ends, the device gets
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
    """Run programs (elements or motions) on a device.

    A device with a port (`haptics.ports`) is served by a compiled loop, any other device by a loop in Python with the
    same kernels. Callbacks in every tick also require the loop in Python.

    Parameters
    ----------
    device : Device
        The device, not yet opened.
    program : Element or Motion
        Initial program. Its ``period`` is the period of the loop.
    trace : Trace
        Trace that receives a row per tick.
    clock : Clock, optional
        Clock of the run: by default a `WallClock`; a plain `Clock` runs in simulated time, as fast as possible.
    limits : Limits, optional
        Limits of the envelope; by default the limits of the device.
    supervision : Supervision, optional
        Application to watch, and its control messages: stop, new settings, dead-man's key.
    supervisor : callable, optional
        Called before the device is opened, during `haptics.clock.pause` in ``open``, and at the start of every tick.
    before_tick : callable, optional
        Called with the rendering at the start of every tick, for example to apply new settings.
    key_held : callable, optional
        Returns True while the dead-man's key is held; required if the limits demand the key and there is no
        `supervision`.

    Attributes
    ----------
    safe_output_ns : int
        Time at which the device had its safe output (monotonic clock, ns).

    Raises
    ------
    CausalityError, ConfigurationError
        If element and device are not compatible, or there is no dead-man's key; raised before the device is opened.
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
        """Time at which the end of the run was detected (monotonic clock, ns); 0 before."""
        return self._loop.noticed_ns

    @property
    def compiled(self) -> bool:
        """Whether the last run used the compiled loop."""
        return self._loop.compiled

    def warm_up(self) -> None:
        """Compile the code of a tick and touch its memory, without accessing the device."""
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
            Duration of the run [s].
        opened : callable, optional
            Called once after the device is opened, before the first tick.
        between : callable, optional
            Called in simulated time every `haptics.servo.loop.AT_ONCE` ticks or earlier if it requests so, for callers
            that follow the trace or control the run (`gate`, `mark`, `take`).

        Returns
        -------
        End
            Reason for the end. If the end is requested before the device is open, the device remains closed, and a wait
            in ``open`` with `haptics.clock.pause` is cancelled.

        Raises
        ------
        DeviceNotFoundError, DeviceOpenError
            If the device could not be opened.
        DeviceFault
            If a failure occurs after that; contains the last rows of the trace. The safe output has been written if the
            device still accepted it.
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
            # Any error, such as an OSError of a driver or an error in a custom law: write the safe output before the
            # report.
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
        """Open the device for a first run of `duration` [s] whose ticks are made by `haptics.servo.offline`.

        The run must be ended with `leave`.

        Returns
        -------
        tuple or None
            See `haptics.servo.loop.Loop.ready`.
        """
        self._loop.prepare(round(duration / self.period))
        self.device.open()
        return self._loop.ready()

    def leave(self) -> None:
        """Write the safe output and close the device."""
        self._leave_safe()

    def _open(self) -> End | None:
        """Open the device; return the reason if the run ends before it is open, else None."""
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
        """Switch to another program at the next tick; may be called from another thread.

        Parameters
        ----------
        program : Element or Motion
            The new program, or the present one with other parameters.
        number : int
            Number of the program in the run: unchanged for other parameters, the next number for a new program, which
            starts from its initial state.
        version : int
            Version of these settings in the recording.

        Raises
        ------
        CausalityError, ConfigurationError
            If program and device are not compatible; nothing is changed.
        """
        self._loop.publish(self.rendering.prepare(program, number), version)

    def gate(self, closed: bool) -> None:
        """Fade the output out or in from the next tick on, for example between trials."""
        self._loop.supervision.gate(closed)

    def mark(self, marker: int) -> None:
        """Set the marker of the rows from the next tick on."""
        self._loop.supervision.mark(marker)

    def stop(self) -> None:
        """End the run at the next tick; may be called from another thread or a signal handler."""
        self._loop.stop()

    def _fault(self, error: Exception, unsafe: Exception | None = None) -> DeviceFault:
        """Return the fault for `error`, with device, tick and cause; `unsafe` is an error of the safe output."""
        words, why = _in_words(error), getattr(self.device, "explain", str)()
        if why and why not in words:
            words = f"{why} (It was noticed as: {words.removesuffix('.')}.)"
        message = f"{self.device.spec.name} failed at tick {self._loop.tick}: {words}"
        if unsafe is not None and _in_words(unsafe) not in message:
            message = f"{message.removesuffix('.')}. It could not be left safe: {_in_words(unsafe)}"
        return DeviceFault(message, self.trace.since(max(self.trace.count - 1000, 0)))

    def _leave_safe(self) -> None:
        """Write the safe output in steps of one period and close the device, each even if the other fails."""
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
                except Exception as error:  # the next one may succeed
                    failure = error
        finally:
            self.device.close()
        if failure is not None:
            raise failure


def _in_words(error: Exception) -> str:
    """Return the message of an error, with its type if it is not an error of this project."""
    return str(error) if isinstance(error, HapticError) else f"{type(error).__name__}: {error}"
