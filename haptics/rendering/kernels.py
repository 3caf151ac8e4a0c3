"""Kernels of one rendering tick: from the sample through program and envelope to the command.

A *program* computes an output from the sample: an element, with or without a scene, or a motion. Only this module
creates commands, and only here is the sign of a force changed: the force of an element has the direction of the motion,
and an impedance device is commanded the opposite force. An admittance device is commanded a position reference, the
integral of the element's velocity. When the envelope stops the reference, it also stops the element's mass
(anti-windup). The class is in `rendering`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from haptics.elements.kernels import MODEL_D, PARAMETER_FIELDS, STATE_FIELDS
from haptics.friction.kernels import LAW
from haptics.jit import element_at, kernel, merged_kernel
from haptics.records import Permission, Rows, fields
from haptics.rendering import envelope, passivity, walls

# --- motions ----------------------------------------------------------------------------------------------------------
#
# Kernel of one tick of a motion: reference, position controller and following error limit.
#
# A motion is a part like the step of an element (`haptics.jit`), but it takes the complete record of a tick, because
# it needs the position of the device. See `motion` for the class. The record contains the parameters of the motion
# (`MOTION`, changed by settings only) and its progress (`FOLLOWER`).

MODEL_MOTION = 100
"""Model number of a motion; elements have lower numbers."""

TABLE_COLUMNS = 6
"""Numbers in a row of a reference: position [m], velocity [m/s] and force [N], two of each."""

OVERSPEED_TIME = 0.02
"""Time for which the speed limit of a motion may be exceeded [s]; tolerates a single late sample."""

FOLLOWER = np.dtype([*fields("<i8", "begun row racing astray tripped"), *fields("<f8", "origin load", 2)])
"""Progress of a motion.

``astray`` is nonzero once the end effector did not follow. ``tripped`` is nonzero once the gains for the rest phase are
in use. Both are kept until the motion is restarted.
"""


@kernel
def _advance_row(s: Any) -> bool:
    """Advance to the next row, if any; return True if the reference moved.

    The reference waits while the output is not fully applied, so that it does not run ahead of the device. After missed
    deadlines it skips rows for an impedance device, whose handle moved on under the last force, but not for an
    admittance device, which held its position.
    """
    f = s.follower
    if f.begun == 0:
        f.begun = 1
        for i in range(2):
            f.origin[i] = 0.0
            if s.motion.relative != 0:
                f.origin[i] = s.reference[i] if s.admittance != 0 else s.position[i]
        return False
    if s.gain * s.gate < 1.0 or f.row + 1 >= s.motion.rows:
        return False
    f.row = f.row + 1 if s.admittance != 0 else min(f.row + s.periods, s.motion.rows - 1)
    return True


@kernel
def _write_control_force(s: Any, first: bool, force_x: float, force_y: float) -> None:
    """Write the controller force to ``s.output`` (impedance), with the sign of an element's force."""
    K, B, f, e, v = s.stiffness, s.damping, s.follower, s.displacement, s.sliding_velocity
    if f.tripped != 0:
        K, B, force_x, force_y = s.motion.rest_stiffness, s.motion.rest_damping, 0.0, 0.0
    x = force_x - K * e[0] + B * (v[0] - s.velocity[0])
    y = force_y - K * e[1] + B * (v[1] - s.velocity[1])
    rate, bound = s.motion.integration, s.motion.bound
    if first:
        f.load[0], f.load[1] = s.last[0] - x, s.last[1] - y
        if rate == 0.0 or math.hypot(f.load[0], f.load[1]) > bound:  # else continue from the present force
            f.load[0] = f.load[1] = 0.0
    x, y = x + f.load[0], y + f.load[1]
    x, y, cut = envelope.limit_norm(x, y, bound)
    if cut == 0 and s.gain * s.gate == 1.0:  # anti-windup: do not integrate while the output is limited
        f.load[0] -= rate * s.period * e[0]
        f.load[1] -= rate * s.period * e[1]
    s.output[0], s.output[1] = -x, -y


@kernel
def step_motion(s: Any, _x: float, _y: float) -> None:
    """Advance a motion by one period; its inputs are in the record.

    The columns of an element apply to a motion as follows: the proxy is the reference, the sliding velocity is its
    velocity, the displacement is the following error, and it sticks at the end of the reference.
    """
    f, m = s.follower, s.motion
    if f.astray != 0:
        return
    first = f.begun == 0
    moved = _advance_row(s)
    at = TABLE_COLUMNS * f.row
    x, y = f.origin[0] + element_at(m.table, at), f.origin[1] + element_at(m.table, at + 1)
    for i in range(2):
        s.sliding_velocity[i] = element_at(m.table, at + 2 + i) if moved else 0.0
        s.friction_force[i] = 0.0
    e, v = s.displacement, s.velocity
    if m.contact == 0:
        e[0], e[1] = s.position[0] - x, s.position[1] - y
    else:  # a motion that acts as a sticking contact: the integral of the velocity error, as in an element
        for i in range(2):
            before = 0.0 if first else e[i]
            e[i] = before + s.period * (v[i] - s.sliding_velocity[i])
    error = math.hypot(e[0], e[1])
    if f.tripped == 0:  # the gains for the rest phase apply from its start, or when the following error exceeds `trip`
        if m.trip > 0.0 and error > m.trip:
            f.row = max(f.row, m.rows - 1 - m.resting)
            f.tripped = 1
        elif m.resting > 0 and f.row + m.resting >= m.rows:
            f.tripped = 1
    s.sticking = 1 if f.row + 1 >= m.rows else 0
    f.racing = f.racing + 1 if math.hypot(v[0], v[1]) > m.max_speed else 0
    if error > m.max_error or f.racing * s.period > OVERSPEED_TIME:
        f.astray = 1
    if s.admittance != 0:
        vx, vy = (x - s.reference[0]) / s.period, (y - s.reference[1]) / s.period
        s.output[0], s.output[1], _ = envelope.limit_norm(vx, vy, m.bound)
    else:
        _write_control_force(s, first, element_at(m.table, at + 4), element_at(m.table, at + 5))


# --- tick -------------------------------------------------------------------------------------------------------------

_SAMPLE_FIELDS: list[tuple[Any, ...]] = [
    *fields("<f8", "position velocity force", 2),
    ("sample_age", "<f8"),
    ("permission", "<i8"),
    ("gate", "<f8"),
    ("version", "<i8"),
]
_ENVELOPE_FIELDS: list[tuple[Any, ...]] = [
    *fields("<i8", "admittance eases_down"),
    *fields("<f8", "max_sample_age plausible_speed sensor_range max_following_error fade_in watchdog max_norm"),
    *fields("<f8", "max_rate max_speed max_energy heating continuous_force largest_force"),
    *fields("<f8", "workspace_min workspace_max", 2),
]
RENDERING_FIELDS: list[tuple[Any, ...]] = [
    *fields("<i8", "status started changed fresh"),
    ("follower", FOLLOWER),
    *fields("<f8", "gain rise last_gate ease heat"),
    ("held", "<f8", (2,)),
    ("held_share", "<f8"),
    *fields("<i8", "bad_ticks last_tick periods good_tick trusted_tick"),
    ("trusted_age", "<f8"),
    *fields("<f8", "trusted reference last command", 2),
    *passivity.PASSIVITY_FIELDS,
    *walls.REGION_FIELDS,
    *walls.WALL_FIELDS,
]
CORE = np.dtype(PARAMETER_FIELDS + STATE_FIELDS + _SAMPLE_FIELDS + _ENVELOPE_FIELDS + RENDERING_FIELDS)
"""Record with all inputs, parameters and states of a tick."""

_TOLD_RELEASED, _TOLD_ENDING = int(Permission.RELEASED), int(Permission.ENDING)


@kernel
def _check_sample(s: Any, tick: int) -> int:
    """Apply rules 1 to 3 to the sample of `tick`; return its flag, or 0 if it can be trusted."""
    px, py, vx, vy = s.position[0], s.position[1], s.velocity[0], s.velocity[1]
    flag = envelope.sample_flag(px, py, vx, vy, s.force[0], s.force[1], s.sample_age, s.max_sample_age)
    if flag == 0:
        # The last trusted sample may have been older than this one, which gives the handle more time to move.
        duration = max(tick - s.trusted_tick, 1) * s.period + max(s.trusted_age - s.sample_age, 0.0)
        dx, dy = (px - s.trusted[0], py - s.trusted[1]) if s.started != 0 else (0.0, 0.0)
        flag = envelope.plausibility_flag(dx, dy, vx, vy, duration, s.plausible_speed)
    if flag == 0:
        s.trusted_tick, s.trusted_age, s.trusted[0], s.trusted[1] = tick, s.sample_age, px, py
        if math.hypot(s.force[0], s.force[1]) > s.sensor_range * envelope.ROUNDING:
            flag = envelope.IMPLAUSIBLE
        # An arm that is blocked, or whose motors are off, does not follow its reference. Its servo would push with
        # increasing force, and once freed the arm would jump to the reference. The error is nan before the first
        # reference.
        elif math.hypot(px - s.reference[0], py - s.reference[1]) > s.max_following_error:
            flag = envelope.FOLLOWING_ERROR
    elif flag == envelope.IMPLAUSIBLE:  # restart the time: waiting must not make a jump plausible
        s.trusted_tick, s.trusted_age = tick, 0.0
    return flag


@kernel
def _update_energy(s: Any, periods: int) -> bool:
    """Update the energy balance; return True if rule 10 applies, which is not the case for motions."""
    if s.model == MODEL_MOTION:
        passivity.restart_observation(s)
        passivity.repeat_last_command(s, periods)
        return False
    passivity.observe(s, periods)
    return True


@kernel
def _update_gain(s: Any) -> int:
    """Apply rules 5 and 6 to the gain, the share of the output in this tick, and return the flags."""
    released = (s.permission & _TOLD_RELEASED) != 0
    if released or (s.permission & _TOLD_ENDING) != 0:
        s.gain = max(s.gain - s.period / envelope.FADE_OUT, 0.0)
    else:
        s.gain = min(s.gain + s.period / s.rise, 1.0) if s.rise > 0.0 else 1.0
    if s.gain == 1.0 or released:
        s.rise = s.fade_in
    return (envelope.RELEASED if released else 0) | (envelope.FADE if s.gain < 1.0 or s.gate < 1.0 else 0)


@kernel
def _limit_norm_and_slew(s: Any, x: float, y: float) -> tuple[float, float, int]:
    """Apply rules 7 and 8 to the force or velocity (x, y); return it with its flags."""
    x, y, limited = envelope.limit_norm(x, y, s.max_norm)
    if s.heating > 0.0:
        x, y, warm = envelope.limit_norm(x, y, envelope.warm_norm(s.heat, s.continuous_force, s.largest_force))
        limited |= envelope.THERMAL if warm != 0 else 0
    x, y, slew = envelope.limit_slew(x, y, s.last[0], s.last[1], s.max_rate * s.period)
    return x, y, limited | slew


@merged_kernel
def _impedance(s: Any, row: Any, periods: int) -> int:
    """Compute the tick of an impedance device: the force on the handle opposes the element's force."""
    vx, vy = s.velocity[0], s.velocity[1]
    if s.bad_ticks != 0:  # after bad ticks the mass continues with the velocity of the handle
        s.mass_velocity[0], s.mass_velocity[1] = vx, vy
    walls.step_on_scene(s, vx, vy)
    x, y = walls.add_walls(s, -s.output[0], -s.output[1])
    row.command_unlimited[0], row.command_unlimited[1] = x, y
    if not math.isfinite(x + y):
        return envelope.NOT_FINITE
    if s.follower.astray != 0:
        return envelope.ASTRAY
    if s.changed != 0:  # begin a transition from the present force
        s.changed = 0
        share = s.gain * s.gate
        if s.eases_down == 0:  # the first formats faded in larger forces, as after the start, and no smaller ones
            s.rise = s.fade_in
            asked, present = math.hypot(x, y), math.hypot(s.last[0], s.last[1])
            if s.gain * asked > present:
                s.gain = present / asked
        elif s.fade_in > 0.0 and share > 0.0:
            s.ease, s.held_share = 1.0, share
            s.held[0], s.held[1] = s.last[0], s.last[1]
    flags = _update_gain(s)
    passive = _update_energy(s, periods)
    most = s.max_energy if passive else math.inf
    if passive and s.passivity_control != 0:
        x, y, flag = passivity.dissipate(s, x, y)
        flags |= flag
    share = s.gain * s.gate
    x, y = share * x, share * y
    if s.ease > 0.0:  # the transition from the stored force, which is reduced in proportion to the share
        part = 0.5 - 0.5 * math.cos(math.pi * s.ease)
        s.ease = max(s.ease - s.period / s.fade_in, 0.0)
        left = min(share / s.held_share, 1.0)
        x, y = x + part * (left * s.held[0] - x), y + part * (left * s.held[1] - y)
        flags |= envelope.FADE
    x, y, flag = _limit_norm_and_slew(s, x, y)
    flags |= flag
    clipped = 0
    for _ in range(2):
        x, y, driving = envelope.limit_driving(x, y, vx, vy, s.max_speed)
        x, y, injecting = envelope.limit_energy(x, y, vx, vy, s.injected, most)
        x, flag_x = envelope.limit_outward(x, s.position[0], s.workspace_min[0], s.workspace_max[0])
        y, flag_y = envelope.limit_outward(y, s.position[1], s.workspace_min[1], s.workspace_max[1])
        clipped |= flag_x | flag_y
        flags |= driving | injecting | clipped
        if clipped == 0:  # else repeat: after clipping by rule 11, a braking force may drive the handle
            break
    if clipped != 0 and x * vx + y * vy > 0.0 and flags & (envelope.SPEED | envelope.ENERGY) != 0:
        x, y = 0.0, 0.0
    s.last[0], s.last[1] = x, y
    s.command[0], s.command[1] = x, y
    return flags


@merged_kernel
def _admittance(s: Any, row: Any, periods: int) -> int:
    """Compute the tick of an admittance device: the reference moves with the element's velocity."""
    T, before = s.period, s.gain * s.last_gate
    s.changed = 0  # the inertia of the virtual mass prevents a jump of the velocity
    flags = _update_gain(s)
    share = s.gain * s.gate
    braking = share < before or share == 0.0
    heard = 1.0 if braking else share  # share of the hand's force during the fade-in
    s.wall_share = heard
    hx, hy = walls.add_walls(s, heard * s.force[0], heard * s.force[1])
    walls.step_on_scene(s, hx, hy)
    vx, vy = s.output[0], s.output[1]
    row.command_unlimited[0] = s.reference[0] + T * vx
    row.command_unlimited[1] = s.reference[1] + T * vy
    if not math.isfinite(vx + vy):
        return envelope.NOT_FINITE
    if s.follower.astray != 0:
        return envelope.ASTRAY
    most = s.max_energy if _update_energy(s, periods) else math.inf
    if braking:
        vx, vy = share * vx, share * vy
    vx, vy, flag = _limit_norm_and_slew(s, vx, vy)
    flags |= flag
    vx, vy, flag = envelope.limit_energy(vx, vy, -s.force[0], -s.force[1], s.injected, most)
    flags |= flag
    vx, flag_x = envelope.limit_approach(vx, s.reference[0], s.workspace_min[0], s.workspace_max[0], s.max_rate, T)
    vy, flag_y = envelope.limit_approach(vy, s.reference[1], s.workspace_min[1], s.workspace_max[1], s.max_rate, T)
    if flag_x | flag_y != 0 and s.injected > most and vx * s.force[0] + vy * s.force[1] < 0.0:
        vx, vy = 0.0, 0.0  # after clipping by rule 11, the rest may oppose the hand
        flags |= envelope.ENERGY
    if vx != s.output[0] or vy != s.output[1]:
        # Anti-windup: the motion that the envelope removed must not remain as momentum or, in a sticking contact of
        # model D, as tension of the coupling.
        if s.sticking != 0 and s.model == MODEL_D:
            s.displacement[0] -= s.period * (s.output[0] - vx)
            s.displacement[1] -= s.period * (s.output[1] - vy)
        s.mass_velocity[0], s.mass_velocity[1] = vx, vy
    if share == 0.0:  # release the coupling, whose tension would move the device when the output fades in again
        s.displacement[0] = s.displacement[1] = 0.0
    s.last[0], s.last[1] = vx, vy
    s.reference[0] += T * vx
    s.reference[1] += T * vy
    s.command[0], s.command[1] = s.reference[0], s.reference[1]
    return flags | flag_x | flag_y


@kernel
def _safe_output(s: Any, row: Any, tick: int) -> None:
    """Count a bad tick and command the safe output: half of the last force and then zero, or hold the reference.

    After a short gap the output rises as fast as it fell. The element is at rest. Before the first good sample an
    admittance device has no reference to hold: the command is nan and must not be written.
    """
    s.bad_ticks += 1
    if (tick - s.good_tick) * s.period > envelope.FADE_OUT:
        s.rise = s.fade_in
    elif s.bad_ticks == 1 and s.gain == 1.0:
        s.rise = min(envelope.FADE_OUT, s.fade_in)
    s.gain = 0.5 * s.gain if s.bad_ticks == 1 else 0.0
    s.ease = 0.0
    passivity.restart_observation(s)
    share = 0.5 if s.bad_ticks == 1 and s.admittance == 0 else 0.0
    s.sticking = 0
    if s.admittance != 0 and s.gain == 0.0:
        s.displacement[0] = s.displacement[1] = 0.0
    for i in range(2):
        s.last[i] *= share
        s.mass_velocity[i] = 0.0
        s.friction_force[i] = 0.0
        s.sliding_velocity[i] = 0.0
        s.command[i] = s.reference[i] if s.admittance != 0 else s.last[i]
        row.command_unlimited[i] = s.command[i]


@merged_kernel
def render(s: Any, row: Any) -> None:
    """Compute the command from the sample in `s` and fill the physical columns of `row`.

    The tick number of `row` must be set.
    """
    tick = row.tick
    if s.heating > 0.0:  # the last command acted until now
        exponent = s.heating * s.period * max(tick - s.last_tick, 1)
        s.heat = envelope.heat_after(s.heat, s.command[0], s.command[1], s.continuous_force, exponent)
    flags = _check_sample(s, tick)
    if flags == 0:
        if s.started == 0:  # start at the present position, without a jump
            s.started = 1
            s.reference[0], s.reference[1] = s.position[0], s.position[1]
        if s.fresh != 0:
            s.fresh = s.sticking = 0  # reset the state of the program; a virtual mass has the present velocity
            s.follower.begun = s.follower.row = s.follower.racing = s.follower.astray = s.follower.tripped = 0
            for i in range(2):
                velocity = s.last[i] if s.admittance != 0 else s.velocity[i]
                s.mass_velocity[i] = s.sliding_velocity[i] = velocity
                s.displacement[i] = s.friction_force[i] = s.output[i] = 0.0
            for i in range(len(s.memory)):
                s.memory[i] = 0.0
            passivity.restart_observation(s)
        periods = s.periods = max(tick - s.last_tick, 1)
        if periods * s.period > s.watchdog:  # the device's watchdog has released the motors: treat as start
            s.gain = s.last[0] = s.last[1] = 0.0
            s.rise = s.fade_in
        flags = _admittance(s, row, periods) if s.admittance != 0 else _impedance(s, row, periods)
    if flags & envelope.UNUSABLE != 0:
        _safe_output(s, row, tick)
    else:
        s.bad_ticks = 0
        s.good_tick = tick
    if s.admittance == 0:
        passivity.store_command(s, s.command[0], s.command[1])
    s.last_tick = tick
    s.last_gate = s.gate
    for i in range(2):
        row.position[i] = s.position[i]
        row.velocity[i] = s.velocity[i]
        row.force[i] = s.force[i]
        row.command[i] = s.command[i]
        row.proxy[i] = s.reference[i] if s.admittance != 0 else s.position[i] - s.displacement[i]
        row.displacement[i] = s.displacement[i]
        row.friction_force[i] = s.friction_force[i]
        row.sliding_velocity[i] = s.sliding_velocity[i]
    walls.report_walls(s, row)
    row.sample_age = s.sample_age
    row.injected_energy = s.injected
    row.sticking = s.sticking
    row.permission = s.permission
    row.gate = s.gate
    row.region = s.region
    row.status = flags


@kernel
def assistance(s: Any) -> Any:
    """Return the share of the friction compensation that the device may add to the last command, 0 to 1.

    It equals the share of the output, and is 0 while the envelope forbids any force that drives the handle.
    """
    return 0.0 if s.status & (envelope.SPEED | envelope.ENERGY) != 0 else s.gain * s.gate


@kernel
def render_row(s: Any, row: Any, tick: int, time: float, late: float, timing_flags: int) -> None:
    """Render the sample in `s` into the trace `row`, except for columns known only after the tick."""
    row.tick = tick
    render(s, row)
    row.time = time
    row.period_error = late
    row.settings_version = s.version
    row.status |= timing_flags
    s.status = row.status


@kernel
def render_slot(core: Rows, slots: Rows, slot: int, tick: int, time: float, late: float, timing_flags: int) -> None:
    """Call `render_row` for the trace row `slot`; for callers in Python."""
    render_row(core[0], slots[slot], tick, time, late, timing_flags)


@kernel
def render_again(core: Rows, recorded: Rows, rows: Rows) -> None:
    """Render all recorded samples into `rows`, starting from the state in `core`."""
    s = core[0]
    for k in range(len(recorded)):
        sample = recorded[k]
        for i in range(2):
            s.position[i] = sample.position[i]
            s.velocity[i] = sample.velocity[i]
            s.force[i] = sample.force[i]
        s.sample_age = sample.sample_age
        s.permission, s.gate = sample.permission, sample.gate
        render(s, rows[k])


# --- new parameters ---------------------------------------------------------------------------------------------------

_WORDS = np.dtype(PARAMETER_FIELDS).itemsize // 8
_STEP = 0
_ADDRESS = int(CORE.fields["law"][1] + LAW.fields["address"][1]) // 8  # type: ignore[index]


@kernel
def configure(core: Rows, core_words: Any, parameters: Any) -> None:
    """Replace the parameters of the program, keeping its state.

    `parameters` is a record of dtype `PARAMETERS`. Parameters from another process contain no addresses (of the step
    and of a custom law); the present addresses are kept. A different program number means a new program, whose state is
    reset at the next good sample. The kernel gets `parameters` as 8-byte words, and `core_words` is `core` in the same
    form.
    """
    s = core[0]
    program, changed = s.program, False
    for i in range(_WORDS):
        if i in (_STEP, _ADDRESS) and parameters[i] == 0:
            continue
        changed = changed or core_words[i] != parameters[i]
        core_words[i] = parameters[i]
    if changed:
        s.changed = 1
    if s.program != program:
        s.fresh = 1
    if s.scene.look_up == 0:
        s.region = walls.NO_REGION
