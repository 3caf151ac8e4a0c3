"""Kernels of the haptic loop: the steps of a tick around its rendering, and a complete compiled run.

A tick waits for its deadline, gets a sample, renders it, passes on the command and adds a row to the trace. `due`,
`render_tick` and `end_tick` are the steps. The loop for Python devices calls them individually; `run_ticks` executes
all of them for a device with a port (`haptics.ports`). Both loops therefore behave identically.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from haptics.device import DEAD_MAN_BUTTON
from haptics.jit import kernel, merged_kernel
from haptics.parts import call_part, fence
from haptics.ports import PORT_FIELDS
from haptics.records import LATE_FRACTION, Permission, Rows, Status
from haptics.rendering.envelope import UNUSABLE
from haptics.rendering.kernels import assistance, render_row
from haptics.servo.loop_record import BUTTON, KEY
from haptics.servo.supervision import key_is_held, take_settings, why_to_end
from haptics.servo.system_kernels import monotonic_ns, raise_event, sleep_until

_STARTED_LATE = int(Status.STARTED_LATE)
_ENDED_LATE = int(Status.ENDED_LATE)
_AFTER_SKIP = int(Status.AFTER_SKIP)
_RELEASED = int(Permission.RELEASED)
_TOLD_TO_END = int(Permission.ENDING)

GOES_ON, OVER, NO_SAMPLES, DEVICE_FAULT = range(4)
"""Results of `run_ticks`: tick limit reached, run over, no usable sample for too long, device fault."""

FAULT_AFTER = 0.1
"""Time without a usable sample after which the device counts as failed [s]."""

GATE_TIME = 0.05
"""Duration of the gate's transition between closed and open, along half a period of a cosine [s]."""

PORT = np.dtype(PORT_FIELDS)

_ATTEMPTS = 100
"""Maximum number of attempts to read a sample while a thread writes it."""

NEVER = 2**62
"""Number of a tick that is never reached."""


# --- steps of a tick: s is the record of the run, c the record of the rendering ---------------------------------------


@kernel
def due(s: Any, c: Any, late: float, asked: int) -> bool:
    """Process the deadline that passed `late` [s] ago; return True if there is a tick to render.

    Deadlines that were missed entirely are skipped. A nonzero `asked` is the reason to end the run
    (`haptics.servo.supervision`): the output fades out, and the run is over when the output is zero.
    """
    s.flags = 0
    if late >= s.period:
        missed = int(late / s.period)
        s.tick += missed
        late -= missed * s.period
        s.flags = _AFTER_SKIP
        if s.tick >= s.last:
            return False
    s.late = late
    if late > LATE_FRACTION * s.period:
        s.flags |= _STARTED_LATE
    if s.end == 0 and asked != 0:
        s.end = asked
        s.fading, s.last = min(s.fading, s.tick), min(s.last, s.tick + s.brake_ticks)
    at_rest = c.last[0] == 0.0 and c.last[1] == 0.0
    return not (s.end != 0 and s.tick >= s.fading + s.fade_ticks and at_rest)


@kernel
def _move_gate(s: Any, closed: bool) -> float:
    """Update the gate and return its scale factor in this tick, 0 to 1."""
    step = s.period / GATE_TIME
    if not closed and s.opening == 1.0:
        return 1.0
    s.opening = max(s.opening - step, 0.0) if closed else min(s.opening + step, 1.0)
    return 0.5 - 0.5 * math.cos(math.pi * s.opening)


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
    c.gate = _move_gate(s, closed)
    c.permission = (_TOLD_TO_END if s.tick >= s.fading else 0) | (_RELEASED if released else 0)
    render_row(c, row, s.tick, now, s.late, s.flags)
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
def due_now(loop: Rows, core: Rows, late: float, asked: int) -> bool:
    """Call `due`."""
    return due(loop[0], core[0], late, asked)


@kernel
def render_next(
    loop: Rows, core: Rows, port: Rows, slots: Rows, now: float, age: float, marker: int, closed: bool, released: bool
) -> bool:
    """Call `render_tick` for the next slot of the trace."""
    s = loop[0]
    return render_tick(s, core[0], port[0], slots[s.count % len(slots)], now, age, marker, closed, released)


@kernel
def end_of_tick(loop: Rows, core: Rows, slots: Rows, count: Any, write_time: float, tick_time: float) -> bool:
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
        sleep_until(deadline - s.spin_ns, scratch)
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
def _take_sample(s: Any, port: Any, sample: Any, now: float, elapsed: float) -> None:
    """Update the sample in `port`, or copy it to `sample`; keep the old one while a thread writes."""
    if s.take != 0:
        call_part(s.take, port, now, elapsed)
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


@kernel
def _give_command(s: Any, port: Any, sample: Any, scratch: Any) -> None:
    """Pass the command in `sample` to the device."""
    x, y = sample.command[0], sample.command[1]
    port.assistance = sample.assistance
    if s.give != 0:
        call_part(s.give, port, x, y)
    else:
        port.commands += 1  # odd during the write
        fence()
        port.command[0], port.command[1] = x, y
        fence()
        port.commands += 1
    if s.wake >= 0:
        raise_event(s.wake, scratch)


@merged_kernel
def serve(s: Any, c: Any, port: Any, sample: Any, row: Any, count: Any, control: Any, scratch: Any) -> int:
    """Execute a tick after its deadline; return `GOES_ON` or the reason to stop.

    Waiting and new settings are handled by the caller.
    """
    now = s.tick * s.period
    marker, closed = control.marker, control.gate_closed != 0
    begun = _elapsed(s, now, scratch)
    _take_sample(s, port, sample, now, begun)
    if port.fault != 0:
        return DEVICE_FAULT
    age = now + (_elapsed(s, now, scratch) - begun) - sample.time
    released = s.dead_man == KEY and not key_is_held(control, scratch)
    released = released or (s.dead_man == BUTTON and sample.buttons & DEAD_MAN_BUTTON == 0)
    start = now + s.late
    if render_tick(s, c, sample, row, now, age, marker, closed, released):
        _give_command(s, port, sample, scratch)
        if port.fault != 0:
            return DEVICE_FAULT
    written = _elapsed(s, now, scratch) - start
    sound = end_tick(s, c, row, count, written, _elapsed(s, now, scratch) - start)
    if not sound:
        return NO_SAMPLES
    s.tick += 1
    return GOES_ON


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
    """Run up to `most` ticks on a device with a port; return the reason for the end (`GOES_ON` etc.).

    `samples` is identical to `ports` if parts provide the sample, else a separate record for a copy. The arguments from
    `controls` on belong to `haptics.servo.supervision`.
    """
    s, c, port, sample, control = loop[0], core[0], ports[0], samples[0], controls[0]
    for _ in range(most):
        if s.tick >= s.last:
            return OVER
        late = _wait(s, scratch)
        asked = why_to_end(s, control, scratch) if s.end == 0 else 0
        if asked != 0:
            s.noticed_ns = monotonic_ns(scratch)
        if not due(s, c, late, asked):
            return OVER
        # Compare here: passing an array to a function updates its reference count with locked instructions.
        if sequence[0] != seen[0]:
            take_settings(core, core_words, sequence, settings, latest, seen[:1])
        if local_sequence[0] != seen[1]:
            take_settings(core, core_words, local_sequence, local_settings, latest, seen[1:])
        row = slots[s.count % len(slots)]
        outcome = serve(s, c, port, sample, row, count, control, scratch)
        if outcome != GOES_ON:
            return outcome
    return GOES_ON
