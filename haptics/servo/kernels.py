"""Kernels of the haptic loop: system calls, supervision, the steps of a tick, and a complete compiled run.

A tick waits for its deadline, gets a sample, renders it, passes on the command and adds a row to the trace.
`begin_tick`, `render_tick` and `end_tick` are the steps. The loop for Python devices calls them individually;
`run_ticks` executes all of them for a device with a port (`haptics.device`). Both loops therefore behave identically.

The system calls use the C library of Linux. On other systems, and without compilation, the loop in Python is used
instead.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import time
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from haptics.device import DEAD_MAN_BUTTON, MAX_CHANNELS, PORT_FIELDS, Causality, DeviceSpec
from haptics.elements.kernels import PARAMETER_FIELDS
from haptics.jit import COMPILED, call_part, fence, kernel, merged_kernel
from haptics.records import LATE_FRACTION, Permission, Rows, Status, fields
from haptics.rendering.envelope import FADE_OUT, UNUSABLE, Limits
from haptics.rendering.kernels import assistance, configure, render_row

STOPPED, APPLICATION_ENDED, APPLICATION_HALTED, APPLICATION_SILENT = 1, 2, 3, 4
"""Reasons to end a run."""

# --- system calls -----------------------------------------------------------------------------------------------------

AVAILABLE = COMPILED and sys.platform == "linux"
"""Whether these kernels are available."""

SCRATCH = 32
"""Size of the int64 buffer for results of system calls."""

_CLOCK_MONOTONIC = 1
_TIMER_ABSTIME = 1
_BILLION = 1_000_000_000

_HALTED, _ENDED = tuple(b"Tt"), tuple(b"ZXx")  # states of a process
_EXITING = 0x4  # kernel flag of a thread that is exiting
_SPACE, _BRACKET, _ZERO = ord(" "), ord(")"), ord("0")

_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.intp))
_clock_nanosleep = types.ExternalFunction(
    "clock_nanosleep", types.int32(types.int32, types.int32, types.intp, types.intp)
)
_write = types.ExternalFunction("write", types.intp(types.int32, types.intp, types.intp))

if COMPILED:
    _getppid = types.ExternalFunction("getppid", types.int32())
    _pread = types.ExternalFunction("pread", types.intp(types.int32, types.intp, types.intp, types.intp))

    @kernel
    def monotonic_ns(scratch: Any) -> int:
        """Return the time of the monotonic clock [ns]."""
        _clock_gettime(_CLOCK_MONOTONIC, scratch.ctypes.data)
        return int(scratch[0] * _BILLION + scratch[1])

else:

    def monotonic_ns(scratch: Any) -> int:
        """Return the time of the monotonic clock [ns]."""
        return time.monotonic_ns()

    def _pread(descriptor: int, address: int, size: int, offset: int) -> int:
        """Read from a file to an address; return the number of bytes, negative on error."""
        try:
            data = os.pread(descriptor, size, offset)
        except OSError:
            return -1
        ctypes.memmove(address, data, len(data))
        return len(data)

    _getppid = os.getppid


@kernel
def raise_event(descriptor: int, scratch: Any) -> None:
    """Signal an event (``eventfd(2)``) to its waiting thread."""
    scratch[0] = 1
    _write(descriptor, scratch.ctypes.data, 8)


@kernel
def process_loss(status_file: int, scratch: Any) -> int:
    """Return `APPLICATION_HALTED`, `APPLICATION_ENDED` (also if it is exiting), or 0 for a running process.

    `status_file` is its open file ``/proc/PID/stat``. The third field is the state, the ninth contains the kernel flags
    of the main thread. Parent, children and pipes are notified only after the last thread has ended and the memory is
    freed, which takes tens of milliseconds.
    """
    length = int(_pread(status_file, scratch.ctypes.data, 8 * SCRATCH, 0))
    if length < 0:
        return APPLICATION_ENDED
    text = scratch.view(np.uint8)
    at = length - 1
    while at > 0 and text[at] != _BRACKET:
        at -= 1
    if at == 0 or at + 2 >= length:
        return 0
    state = text[at + 2]
    if state in _HALTED:
        return APPLICATION_HALTED
    if state in _ENDED:
        return APPLICATION_ENDED
    at += 2
    for _ in range(6):  # from field 3 to field 9
        while at < length and text[at] != _SPACE:
            at += 1
        at += 1
    flags = 0
    while at < length and text[at] != _SPACE:
        flags = 10 * flags + int(text[at]) - _ZERO
        at += 1
    return APPLICATION_ENDED if flags & _EXITING != 0 else 0


# --- supervision ------------------------------------------------------------------------------------------------------

HEARTBEAT_TIMEOUT = 1.0
"""Timeout of the servo's watchdog for the heartbeat of the application [s]."""

CHECK_INTERVAL = 4e-3
"""Interval at which the servo checks whether the application was stopped or has died [s]."""

KEY_TIMEOUT = 0.15
"""Time for which the dead-man's key counts as held after the last report [s]."""

CONTROL = np.dtype(fields("<i8", "heartbeat_ns stop key_ns marker recorded gate_closed granted loaded"))
"""Control record from the application to the servo; each field is written with one aligned store.

``marker`` is the trial or stage and is copied to every row. ``recorded`` is the number of rows on disk, for which a run
in simulated time waits. While ``gate_closed`` is nonzero, the output is faded out. ``granted`` is the number of ticks
that a run in steps may execute. ``loaded`` is the latest version of a program that the servo has loaded; it is the only
field that the servo writes.
"""

_KEY_TIMEOUT_NS = round(KEY_TIMEOUT * 1e9)

SETTINGS = np.dtype([("version", "<i8"), *PARAMETER_FIELDS])
"""New parameters of the element, and their version in the recording."""

LOSSES = {
    APPLICATION_ENDED: "the application has ended",
    APPLICATION_HALTED: "the application was stopped by a signal or a debugger",
    APPLICATION_SILENT: f"the application sent no heartbeat for {HEARTBEAT_TIMEOUT:g} s",
}
"""Causes of the loss of the application, for messages and recordings."""

WATCH_FIELDS: list[tuple[Any, ...]] = [
    *fields("<i8", "application status_file ticks_between_checks ticks_until_check last_heartbeat silent_ticks"),
    *fields("<i8", "max_silent_ticks"),
]
"""Fields for the watchdog in a record; ``application`` is 0 without an application to watch."""


@kernel
def end_reason(s: Any, control: Any, scratch: Any) -> int:
    """Return `STOPPED`, one of `LOSSES`, or 0 to continue; must be called once per tick.

    The application is lost if its heartbeat has not changed for too long, or its process was stopped or has ended. The
    timeout is counted in ticks instead of wall time, so that a suspended machine does not trigger it.
    """
    if control.stop != 0:
        return STOPPED
    if s.application == 0:
        return 0
    if control.heartbeat_ns != s.last_heartbeat:
        s.last_heartbeat, s.silent_ticks = control.heartbeat_ns, 0
    else:
        s.silent_ticks += 1
        if s.silent_ticks > s.max_silent_ticks:
            return APPLICATION_SILENT
    if _getppid() != s.application:
        return APPLICATION_ENDED
    s.ticks_until_check -= 1
    if s.ticks_until_check > 0 or s.status_file < 0:
        return 0
    s.ticks_until_check = s.ticks_between_checks
    loss: int = process_loss(s.status_file, scratch)
    return loss


@kernel
def key_is_held(control: Any, scratch: Any) -> bool:
    """Return True if the dead-man's key is held."""
    return bool(monotonic_ns(scratch) - control.key_ns < _KEY_TIMEOUT_NS)


@kernel
def end_reason_of(watch: Rows, control: Rows, scratch: Any) -> int:
    """Call `end_reason` with (1,) arrays."""
    return end_reason(watch[0], control[0], scratch)


@kernel
def key_is_held_of(control: Rows, scratch: Any) -> bool:
    """Call `key_is_held` with a (1,) array."""
    return key_is_held(control[0], scratch)


@kernel
def apply_settings(core: Rows, core_words: Any, sequence: Any, settings: Any, latest: Any, seen: Any) -> None:
    """Apply settings that were published since the last call; keep the present ones during a write.

    `sequence` and `settings` are the mailbox, `latest` is a buffer for a copy, and `seen` is the last processed
    sequence. The arrays `settings`, `core_words` (the rendering's record) and `latest` consist of 8-byte words.
    """
    before = sequence[0]
    if before == seen[0] or before % 2 != 0:
        return
    fence()
    for i in range(len(latest)):
        latest[i] = settings[i]
    fence()
    if sequence[0] == before:
        seen[0] = before
        configure(core, core_words, latest[1:])
        core[0].version = latest[0]


# --- record of a run --------------------------------------------------------------------------------------------------

NO_KEY, KEY, BUTTON = range(3)
"""Kinds of dead-man's switches: none, the key of the view, the button of the device."""

LOOP = np.dtype(
    [
        ("period", "<f8"),
        *fields("<i8", "live origin_ns spin_ns dead_man fade_ticks brake_ticks read_part write_part wake tick"),
        *fields("<i8", "fading last end"),
        *fields("<i8", "noticed_ns timing_flags"),
        *fields("<f8", "late opening"),
        *fields("<i8", "count channels"),
        ("incoming", "<f8", (MAX_CHANNELS,)),
        *fields("<i8", "bad_ticks first_bad"),
        *WATCH_FIELDS,
    ]
)
"""Parameters, progress and watched processes of a run.

``end`` is 0 until there is a reason to end (`END_REASONS`). ``opening`` is the opening of the gate, 0 to 1.
``channels`` is the total number of values in the channels of the device.
"""

_DEAD_MEN = {"none": NO_KEY, "key": KEY, "button": BUTTON}


def new_loop_record(period: float, spec: DeviceSpec, limits: Limits) -> NDArray[Any]:
    """Return the initial record of a run, (1,) of dtype `haptics.servo.kernels.LOOP`."""

    def ticks_in(duration: float) -> int:
        return math.ceil(duration / period * (1 - 1e-9)) + 1  # one more for rounding

    record = np.zeros(1, LOOP)
    record["period"] = period
    record["dead_man"] = _DEAD_MEN[limits.dead_man]
    record["channels"] = sum(size for _, _, size in spec.channels)
    record["fade_ticks"] = record["brake_ticks"] = ticks_in(FADE_OUT)
    if spec.causality is Causality.ADMITTANCE:  # the reference brakes with the maximum acceleration
        record["brake_ticks"] = max(ticks_in(FADE_OUT), ticks_in(limits.max_speed / limits.max_acceleration))
    return record


# --- ticks ------------------------------------------------------------------------------------------------------------

_STARTED_LATE = int(Status.STARTED_LATE)
_ENDED_LATE = int(Status.ENDED_LATE)
_AFTER_SKIP = int(Status.AFTER_SKIP)
_RELEASED = int(Permission.RELEASED)
_TOLD_TO_END = int(Permission.ENDING)

CONTINUE, OVER, NO_SAMPLES, DEVICE_FAULT = range(4)
"""Results of `run_ticks`: tick limit reached, run over, no usable sample for too long, device fault."""

FAULT_AFTER = 0.1
"""Time without a usable sample after which the device counts as failed [s]."""

GATE_TIME = 0.05
"""Duration of the gate's transition between closed and open, along half a period of a cosine [s]."""

PORT = np.dtype(PORT_FIELDS)

_ATTEMPTS = 100  # maximum number of attempts to read a sample while a thread writes it

NEVER = 2**62
"""Number of a tick that is never reached."""


# --- steps of a tick: s is the record of the run, c the record of the rendering ---------------------------------------


@kernel
def begin_tick(s: Any, c: Any, late: float, asked: int) -> bool:
    """Process the deadline that passed `late` [s] ago; return True if there is a tick to render.

    Deadlines that were missed entirely are skipped. A nonzero `asked` is the reason to end the run
    (`haptics.servo.control`): the output fades out, and the run is over when the output is zero.
    """
    s.timing_flags = 0
    if late >= s.period:
        missed = int(late / s.period)
        s.tick += missed
        late -= missed * s.period
        s.timing_flags = _AFTER_SKIP
        if s.tick >= s.last:
            return False
    s.late = late
    if late > LATE_FRACTION * s.period:
        s.timing_flags |= _STARTED_LATE
    if s.end == 0 and asked != 0:
        s.end = asked
        s.fading, s.last = min(s.fading, s.tick), min(s.last, s.tick + s.brake_ticks)
    at_rest = c.last[0] == 0.0 and c.last[1] == 0.0
    return not (s.end != 0 and s.tick >= s.fading + s.fade_ticks and at_rest)


@kernel
def render_tick(
    s: Any, c: Any, port: Any, row: Any, now: float, age: float, marker: int, closed: bool, released: bool
) -> bool:
    """Render the sample in `port`, `age` [s] old, into the trace `row`, and store the command in `port`.

    Return True if the command may be written: before its first good sample an admittance device has no reference.
    """
    for i in range(2):
        c.position[i], c.velocity[i], c.force[i] = port.position[i], port.velocity[i], port.force[i]
    # A slightly negative age means that the sample was taken within this tick. Beyond, it is from a different clock.
    c.sample_age = age if age >= 0.0 else (0.0 if age > -s.period else math.inf)
    c.gate = 1.0
    if closed or s.opening != 1.0:
        step = s.period / GATE_TIME
        s.opening = max(s.opening - step, 0.0) if closed else min(s.opening + step, 1.0)
        c.gate = 0.5 - 0.5 * math.cos(math.pi * s.opening)
    c.permission = (_TOLD_TO_END if s.tick >= s.fading else 0) | (_RELEASED if released else 0)
    render_row(c, row, s.tick, now, s.late, s.timing_flags)
    row.marker, row.buttons = marker, port.buttons
    row.hand_force[0], row.hand_force[1] = port.hand_force[0], port.hand_force[1]
    for i in range(s.channels):
        row.channels[i] = port.channels[i]
    port.command[0], port.command[1] = c.command[0], c.command[1]
    port.assistance = assistance(c)
    return not math.isnan(c.command[0])


@kernel
def end_tick(s: Any, c: Any, row: Any, count: Any, write_time: float, tick_time: float) -> bool:
    """Complete and publish the trace `row`; return False after `FAULT_AFTER` without a usable sample.

    `write_time` and `tick_time` [s] are the times from the start of the tick until its command was written and until
    its end.
    """
    row.write_time, row.tick_time = write_time, tick_time
    if s.late + tick_time > s.period:
        row.status |= _ENDED_LATE
    s.count += 1
    fence()
    count[0] = s.count
    if c.status & UNUSABLE == 0:
        s.bad_ticks = 0
        return True
    if s.bad_ticks == 0:
        s.first_bad = s.tick
    s.bad_ticks += 1
    return bool((s.tick - s.first_bad + 1) * s.period <= FAULT_AFTER)


# --- wrappers with (1,) arrays for the loop in Python -----------------------------------------------------------------


@kernel
def begin_python_tick(loop: Rows, core: Rows, late: float, asked: int) -> bool:
    """Call `begin_tick`."""
    return begin_tick(loop[0], core[0], late, asked)


@kernel
def render_python_tick(
    loop: Rows, core: Rows, port: Rows, slots: Rows, now: float, age: float, marker: int, closed: bool, released: bool
) -> bool:
    """Call `render_tick` for the next slot of the trace."""
    s = loop[0]
    return render_tick(s, core[0], port[0], slots[s.count % len(slots)], now, age, marker, closed, released)


@kernel
def end_python_tick(loop: Rows, core: Rows, slots: Rows, count: Any, write_time: float, tick_time: float) -> bool:
    """Call `end_tick` for the rendered slot of the trace."""
    s = loop[0]
    return end_tick(s, core[0], slots[s.count % len(slots)], count, write_time, tick_time)


# --- compiled loop ----------------------------------------------------------------------------------------------------


@kernel
def _wait(s: Any, scratch: Any) -> float:
    """Wait for the deadline of the tick, with a busy wait at its end; return the lateness [s]."""
    if s.live == 0:
        return 0.0
    deadline = s.origin_ns + int(s.tick * s.period * 1e9 + 0.5)
    now = monotonic_ns(scratch)
    while now < deadline - s.spin_ns:  # a signal may interrupt the sleep
        until = deadline - s.spin_ns
        scratch[0], scratch[1] = until // _BILLION, until % _BILLION
        _clock_nanosleep(_CLOCK_MONOTONIC, _TIMER_ABSTIME, scratch.ctypes.data, 0)
        now = monotonic_ns(scratch)
    while now < deadline:
        now = monotonic_ns(scratch)
    return float(1e-9 * (now - deadline))


@kernel
def _elapsed(s: Any, now: float, scratch: Any) -> float:
    """Return the time since the start [s]; in simulated time this is the nominal time `now`."""
    elapsed: float = 1e-9 * (monotonic_ns(scratch) - s.origin_ns) if s.live != 0 else now
    return elapsed


@kernel
def _read_sample(s: Any, port: Any, sample: Any, now: float, elapsed: float) -> None:
    """Update the sample in `port`, or copy it to `sample`; keep the old one while a thread writes."""
    if s.read_part != 0:
        call_part(s.read_part, port, now, elapsed)
        return
    for _ in range(_ATTEMPTS):
        before = port.sequence
        fence()
        time, buttons = port.time, port.buttons
        px, py, vx, vy = port.position[0], port.position[1], port.velocity[0], port.velocity[1]
        fx, fy, hx, hy = port.force[0], port.force[1], port.hand_force[0], port.hand_force[1]
        for i in range(s.channels):
            s.incoming[i] = port.channels[i]
        fence()
        if before % 2 == 0 and port.sequence == before:
            sample.time, sample.buttons = time, buttons
            sample.position[0], sample.position[1], sample.velocity[0], sample.velocity[1] = px, py, vx, vy
            sample.force[0], sample.force[1], sample.hand_force[0], sample.hand_force[1] = fx, fy, hx, hy
            for i in range(s.channels):
                sample.channels[i] = s.incoming[i]
            return


@merged_kernel
def execute_tick(s: Any, c: Any, port: Any, sample: Any, row: Any, count: Any, control: Any, scratch: Any) -> int:
    """Execute a tick after its deadline; return `CONTINUE` or the reason to stop.

    Waiting and new settings are handled by the caller.
    """
    now = s.tick * s.period
    marker, closed = control.marker, control.gate_closed != 0
    begun = _elapsed(s, now, scratch)
    _read_sample(s, port, sample, now, begun)
    if port.fault != 0:
        return DEVICE_FAULT
    age = now + (_elapsed(s, now, scratch) - begun) - sample.time
    released = s.dead_man == KEY and not key_is_held(control, scratch)
    released = released or (s.dead_man == BUTTON and sample.buttons & DEAD_MAN_BUTTON == 0)
    start = now + s.late
    if render_tick(s, c, sample, row, now, age, marker, closed, released):
        x, y = sample.command[0], sample.command[1]
        port.assistance = sample.assistance
        if s.write_part != 0:
            call_part(s.write_part, port, x, y)
        else:
            port.commands += 1  # odd during the write
            fence()
            port.command[0], port.command[1] = x, y
            fence()
            port.commands += 1
        if s.wake >= 0:
            raise_event(s.wake, scratch)
        if port.fault != 0:
            return DEVICE_FAULT
    written = _elapsed(s, now, scratch) - start
    sound = end_tick(s, c, row, count, written, _elapsed(s, now, scratch) - start)
    if not sound:
        return NO_SAMPLES
    s.tick += 1
    return CONTINUE


@kernel
def run_ticks(
    loop: Rows,
    core: Rows,
    core_words: Any,
    ports: Rows,
    samples: Rows,
    slots: Rows,
    count: Any,
    controls: Rows,
    sequence: Any,
    settings: Any,
    local_sequence: Any,
    local_settings: Any,
    latest: Any,
    seen: Any,
    scratch: Any,
    most: int,
) -> int:
    """Run up to `most` ticks on a device with a port; return the reason for the end (`CONTINUE` etc.).

    `samples` is identical to `ports` if parts provide the sample, else a separate record for a copy. The arguments from
    `controls` on belong to `haptics.servo.control`.
    """
    s, c, port, sample, control = loop[0], core[0], ports[0], samples[0], controls[0]
    for _ in range(most):
        if s.tick >= s.last:
            return OVER
        late = _wait(s, scratch)
        asked = end_reason(s, control, scratch) if s.end == 0 else 0
        if asked != 0:
            s.noticed_ns = monotonic_ns(scratch)
        if not begin_tick(s, c, late, asked):
            return OVER
        # Compare here: passing an array to a function updates its reference count with locked instructions.
        if sequence[0] != seen[0]:
            apply_settings(core, core_words, sequence, settings, latest, seen[:1])
        if local_sequence[0] != seen[1]:
            apply_settings(core, core_words, local_sequence, local_settings, latest, seen[1:])
        row = slots[s.count % len(slots)]
        outcome = execute_tick(s, c, port, sample, row, count, control, scratch)
        if outcome != CONTINUE:
            return outcome
    return CONTINUE
