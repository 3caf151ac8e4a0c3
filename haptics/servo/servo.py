"""The servo: read, render, limit, write, record, wait; once per period.

Deadlines are absolute. A tick that starts or ends late is flagged. Deadlines that are missed entirely are skipped and
counted, never caught up in a burst. Before a regular end the output fades out. However the loop ends, the device gets
its safe output and is closed.

The loop is compiled for devices with a port, and in Python with the same kernels for all others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.clock import Clock, WallClock, cancelled_by
from haptics.device import DEAD_MAN_BUTTON, Device, Port, port_of
from haptics.errors import ConfigurationError, DeviceFault, HapticError, OpeningCancelled
from haptics.rendering.envelope import Limits, failure_message
from haptics.rendering.programs import Program
from haptics.rendering.rendering import Rendering
from haptics.servo import kernels
from haptics.servo.control import ControlMessages, Supervision
from haptics.servo.kernels import LOSSES, STOPPED
from haptics.trace import Trace

MAX_TICKS_PER_CALL = 1024
"""Maximum number of ticks in simulated time between two callbacks; a fraction of the trace capacity."""

SimulationCallback = Callable[[], int | None]
"""Callback of a run in simulated time.

It returns the number of ticks until the next call, or None for the maximum `MAX_TICKS_PER_CALL`.
"""


class EndReason(StrEnum):
    """Reason for the end of a run, apart from a fault."""

    COMPLETED = "completed"
    STOPPED = "stopped"
    APPLICATION_LOST = "application lost"


END_REASONS = {
    0: EndReason.COMPLETED,
    STOPPED: EndReason.STOPPED,
    **dict.fromkeys(LOSSES, EndReason.APPLICATION_LOST),
}
"""Reasons by the numbers that the kernels return."""


class Servo(ControlMessages):
    """Run programs (elements or motions) on a device.

    A device with a port (`haptics.device`) is served by a compiled loop, any other device by a loop in Python with the
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
        Application to watch, and its control messages: stop, new settings, dead-man's key. Required if the limits
        demand the key.
    before_tick : callable, optional
        Called with the rendering at the start of every tick, for example to apply new settings.

    Attributes
    ----------
    compiled : bool
        Whether the last run used the compiled loop.
    noticed_ns : int
        Time at which the end of the run was detected (monotonic clock, ns); 0 before.
    safe_output_ns : int
        Time at which the device had its safe output (monotonic clock, ns).
    loss : str
        Cause of the loss of the application (`haptics.servo.kernels.LOSSES`); empty if it was not lost.

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
        before_tick: Callable[[Rendering], None] | None = None,
    ) -> None:
        limits = limits or Limits.for_device(device.spec)
        self.device = device
        self.rendering = Rendering(program, device.spec, limits)
        self.trace = trace
        self.period = program.period
        if limits.dead_man == "key" and supervision is None:
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
        self._before_tick = before_tick
        self.supervision = supervision or Supervision()
        self.control = self.supervision.control
        self._compensate: Callable[[float], object] = getattr(device, "compensate", lambda share: None)
        self._record = kernels.new_loop_record(self._clock.period, device.spec, limits)
        self._channels = int(self._record["channels"][0])
        self._core = self.rendering.core
        # Whether the run can be compiled, as far as it does not depend on the device.
        self._may_be_compiled = kernels.AVAILABLE and before_tick is None and type(self._clock) in (Clock, WallClock)
        self.compiled = False
        self.noticed_ns = self.safe_output_ns = 0
        self.loss = ""

    def warm_up(self) -> None:
        """Compile the code of a tick and touch its memory, without accessing the device or changing any state."""
        loop, core, slots = self._record.copy(), self._core.copy(), np.zeros_like(self.trace.slots[:1])
        words = core.view(np.int64)
        self.supervision.warm_up(loop, core, words)
        ports, count = np.zeros(1, kernels.PORT), np.zeros(1, np.int64)
        if self._may_be_compiled and hasattr(type(self.device), "port"):
            of_run = loop, core, words, ports, ports, self.trace.slots, count
            kernels.run_ticks(*of_run, **self.supervision.arrays, most=0)
        kernels.begin_python_tick(loop, core, 0.0, 0)  # an open device may turn out to have no port
        kernels.render_python_tick(loop, core, ports, slots, 0.0, 0.0, 0, False, False)
        kernels.end_python_tick(loop, core, slots, count, 0.0, 0.0)

    def run(
        self,
        duration: float | None = None,
        opened: Callable[[], int | None] | None = None,
        between: SimulationCallback | None = None,
    ) -> EndReason:
        """Open the device, run for `duration` [s] (None: until stopped) and close it.

        Parameters
        ----------
        duration : float or None
            Duration of the run [s].
        opened : callable, optional
            Called once after the device is opened, before the first tick. It may return the number of ticks until the
            first call of `between`.
        between : callable, optional
            Called in simulated time every `MAX_TICKS_PER_CALL` ticks or earlier if it requests so, for callers that
            follow the trace or control the run (`gate`, `mark`, `switch_program`).

        Returns
        -------
        EndReason
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
        self._prepare(None if duration is None else round(duration / self.period))
        if asked := self.supervision.end_reason(self._record):
            return self._end(asked)
        try:
            with cancelled_by(lambda: self.supervision.end_reason(self._record) != 0):
                self.device.open()
        except OpeningCancelled:
            return self._end(self.supervision.end_reason(self._record))
        try:
            first = opened() if opened is not None else None
            end = self._run_loop(between, first or MAX_TICKS_PER_CALL)
        except Exception as error:
            # Any error, such as an OSError of a driver or an error in a custom law: write the safe output before the
            # report.
            unsafe = None
            try:
                self.close()
            except Exception as another:
                unsafe = another
            raise self._fault(error, unsafe) from error
        except BaseException:
            self.close()
            raise
        try:
            self.close()
        except Exception as error:
            raise self._fault(error) from error
        return end

    def open_compiled(self, duration: float) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None:
        """Open the device and start the clock for a first run of `duration` [s] in simulated time.

        The ticks are made by `haptics.servo.offline`. The run must be ended with `close`.

        Returns
        -------
        (loop, core, ports), each a (1,) structured array
            Records of the run, the rendering and the device; None if the run needs Python in every tick.
        """
        self._prepare(round(duration / self.period))
        self.device.open()
        port = port_of(self.device) if self._may_be_compiled else None
        if port is None or not port.read_part or not port.write_part or isinstance(self._clock, WallClock):
            return None
        self._clock.start()
        self._record["count"] = 0
        return self._record, self._core, self._connect(port)

    def switch_program(self, program: Program, number: int, version: int) -> None:
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
        self.supervision.publish(self.rendering.prepare(program, number), version)

    def close(self) -> None:
        """Write the safe output in steps of one period and close the device, each even if the other fails."""
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
                except Exception as error:  # the next one may succeed
                    failure = error
        finally:
            self.device.close()
        if failure is not None:
            raise failure

    # --- begin and end of a run ---------------------------------------------------------------------------------------

    def _end(self, number: int) -> EndReason:
        """Return the reason for the end with this number, and store the cause of a loss."""
        self.loss = LOSSES.get(number, "")
        return END_REASONS[number]

    def _prepare(self, count: int | None) -> None:
        """Prepare a run of `count` ticks, or without an end if None."""
        loop = self._record
        self.noticed_ns = 0
        loop["fading"] = kernels.NEVER if count is None else count - min(int(loop["brake_ticks"][0]), count // 2)
        loop["last"] = kernels.NEVER if count is None else count
        for name in ("tick", "end", "noticed_ns", "bad_ticks"):
            loop[name] = 0
        loop["opening"] = 1.0
        self.supervision.begin(loop)

    def _fault(self, error: Exception, unsafe: Exception | None = None) -> DeviceFault:
        """Return the fault for `error`, with device, tick and cause; `unsafe` is an error of the safe output."""
        words, why = _message(error), getattr(self.device, "explain", str)()
        if why and why not in words:
            words = f"{why} (It was noticed as: {words.removesuffix('.')}.)"
        message = f"{self.device.spec.name} failed at tick {int(self._record['tick'][0])}: {words}"
        if unsafe is not None and _message(unsafe) not in message:
            message = f"{message.removesuffix('.')}. It could not be left safe: {_message(unsafe)}"
        return DeviceFault(message, self.trace.since(max(self.trace.count - 1000, 0)))

    # --- ticks --------------------------------------------------------------------------------------------------------

    def _run_loop(self, between: SimulationCallback | None, first: int) -> EndReason:
        """Start the clock and run to the end; raise `DeviceFault` without a usable sample for too long."""
        loop, clock = self._record, self._clock
        loop["count"] = self.trace.count
        clock.start()
        self.trace.origin[:] = clock.origin_ns
        port = port_of(self.device) if self._may_be_compiled else None
        self.compiled = port is not None
        try:
            if port is None:
                self._run_in_python(between, first)
            else:
                self._run_compiled(port, between, first)
        finally:
            self.noticed_ns = self.noticed_ns or int(loop["noticed_ns"][0])
        return self._end(int(loop["end"][0]))

    def _run_in_python(self, between: SimulationCallback | None, first: int) -> None:
        loop, clock = self._record, self._clock
        ticks, lasts, ports, next_call = loop["tick"], loop["last"], np.zeros(1, kernels.PORT), first
        while ticks[0] < lasts[0]:
            late = clock.wait(int(ticks[0]))
            asked = 0 if loop["end"][0] else self.supervision.end_reason(self._record)
            if asked:
                self.noticed_ns = self.noticed_ns or time.monotonic_ns()
            if not kernels.begin_python_tick(loop, self._core, late, asked):
                break
            clock.tick = int(ticks[0])
            self.supervision.apply_settings(self._core, self.rendering.words)
            if self._before_tick is not None:
                self._before_tick(self.rendering)
            self._tick(ports)
            ticks[0] += 1
            if between is not None and ticks[0] >= next_call and not isinstance(clock, WallClock):
                next_call = int(ticks[0]) + (between() or MAX_TICKS_PER_CALL)
        if between is not None:
            between()

    def _tick(self, ports: NDArray[Any]) -> None:
        """Read, render, write, record."""
        clock, trace, loop, core, port = self._clock, self.trace, self._record, self._core, ports[0]
        marker, closed = int(self.control["marker"][0]), bool(self.control["gate_closed"][0])
        begun = clock.elapsed()
        state = self.device.read()
        now = clock.time
        age = now + (clock.elapsed() - begun) - state.time  # includes the duration of the read
        port["position"], port["velocity"], port["force"] = state.position, state.velocity, state.force
        port["hand_force"], port["buttons"] = state.hand_force, state.buttons
        port["channels"][: self._channels] = math.nan if state.channels is None else state.channels
        held, kind = True, loop["dead_man"][0]
        if kind != kernels.NO_KEY:
            held = bool(state.buttons & DEAD_MAN_BUTTON) if kind == kernels.BUTTON else self.supervision.key_is_held()
        start = now + loop["late"][0]
        if kernels.render_python_tick(loop, core, ports, trace.slots, now, age, marker, closed, not held):
            self._compensate(float(port["assistance"]))
            self.device.write(self.rendering.command)
        written = clock.elapsed() - start
        if not kernels.end_python_tick(loop, core, trace.slots, trace.counter, written, clock.elapsed() - start):
            raise self._no_samples()

    def _connect(self, port: Port) -> NDArray[Any]:
        """Set the device access of the loop; return the device's record, (1,) of dtype `PORT`."""
        loop = self._record
        loop["read_part"], loop["write_part"], loop["wake"] = port.read_part, port.write_part, port.wake
        return port.record.view(np.uint8)[: kernels.PORT.itemsize].view(kernels.PORT)

    def _run_compiled(self, port: Port, between: SimulationCallback | None, first: int) -> None:
        """Run the compiled loop until the end or a fault, with calls of `between` in simulated time."""
        loop, trace, supervision, clock = self._record, self.trace, self.supervision, self._clock
        loop["live"] = live = isinstance(clock, WallClock)
        if isinstance(clock, WallClock):
            loop["origin_ns"], loop["spin_ns"] = clock.origin_ns[0], clock.spin_ns
        ports = self._connect(port)
        samples = ports if port.read_part else np.zeros(1, kernels.PORT)
        of_run = loop, self._core, self.rendering.words, ports, samples, trace.slots, trace.counter
        outcome, most = kernels.CONTINUE, kernels.NEVER if live else first
        while outcome == kernels.CONTINUE:
            outcome = kernels.run_ticks(*of_run, **supervision.arrays, most=most)
            clock.tick = int(loop["tick"][0])
            wish = between() if between is not None else None
            most = kernels.NEVER if live else min(wish or MAX_TICKS_PER_CALL, MAX_TICKS_PER_CALL)
        if outcome == kernels.NO_SAMPLES:
            raise self._no_samples()
        if outcome == kernels.DEVICE_FAULT:
            self.device.read()
            self.device.write(self.rendering.command)
            raise DeviceFault("it reported a fault without saying which: switch it off and on, and start again.")

    def _no_samples(self) -> DeviceFault:
        """Return the fault after `FAULT_AFTER` without a usable sample."""
        trace, limit = self.trace, float(self._core["max_following_error"][0])
        begun, now = trace.count - int(self._record["bad_ticks"][0]), trace.count - 1
        first, last = (trace.slots[number % trace.capacity] for number in (begun, now))
        return DeviceFault(failure_message(first, last, limit, kernels.FAULT_AFTER))


def _message(error: Exception) -> str:
    """Return the message of an error, with its type if it is not an error of this project."""
    return str(error) if isinstance(error, HapticError) else f"{type(error).__name__}: {error}"
