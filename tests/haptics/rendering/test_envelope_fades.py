"""When the output comes up and goes down: start, changes, gaps, the dead-man, and every orderly end.

Every drive through a rendering is computed once more at the end of its test: all of it must come out with the same
bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptics import Coulomb, CoulombViscous, MasslessImpedance, RigidAdmittance, Servo
from haptics.clock import Clock
from haptics.device import DEAD_MAN_BUTTON, State
from haptics.errors import ConfigurationError
from haptics.records import Permission, Rows, Status
from haptics.rendering.envelope import (
    FADE_OUT,
    Limits,
    next_gain,
)
from haptics.servo.loop import End
from haptics.trace import Trace
from tests.haptics.doubles import BenchDevice
from tests.haptics.drives import BAD, PERIOD, Begin, Drive, causality_of, every_kind, sample, stiff
from tests.haptics.strategies import LAWS, make

# --- rules 5 and 6: fades ----------------------------------------------------------------------------------------


@given(st.floats(0.0, 1.0), st.booleans(), st.floats(0.0, 10.0), st.sampled_from([2.5e-4, 1e-3, 1e-2]))
def test_a_gain_stays_between_none_and_all(gain: float, down: bool, fade_in: float, period: float) -> None:
    following = next_gain(gain, down, fade_in, period)
    assert 0.0 <= following <= 1.0
    assert following <= gain if down else following >= gain
    steps = math.ceil((FADE_OUT if down else fade_in) / period) + 1
    for _ in range(steps):
        following = next_gain(following, down, fade_in, period)
    assert following == (0.0 if down else 1.0)


def test_the_force_comes_up_after_the_start(begin: Begin) -> None:
    drive = begin(stiff())
    forces = [drive.force(sample(vx=0.2)) for _ in range(150)]
    assert forces[20:100] == pytest.approx(4.0 * np.arange(21, 101) / 100.0)
    assert forces[100:] == pytest.approx([4.0] * 50)
    faded = (drive.rows["status"] & Status.FADE) != 0
    assert faded.tolist() == [True] * int(faded.sum()) + [False] * int((~faded).sum())
    assert 98 <= faded.sum() <= 100


def test_in_front_of_an_arm_it_is_the_hands_force_that_comes_up(begin: Begin) -> None:
    drive = begin(RigidAdmittance(Coulomb(6.0), 2.0))
    path = np.array([drive(sample(fx=10.0))["command"][0] for _ in range(150)])
    acceleration = np.diff(path, 2) / PERIOD**2
    assert path[:59].tolist() == [0.0] * 59, "below the friction the mass sticks"
    assert acceleration[62:98] == pytest.approx((10.0 * np.arange(65, 101) / 100.0 - 6.0) / 2.0, abs=1e-6)
    assert acceleration[100:] == pytest.approx([2.0] * 48, abs=1e-6)


@every_kind
def test_a_change_of_parameters_changes_the_force_gradually(begin: Begin, kind: str) -> None:
    drive = begin(kind, max_force=100.0)
    moving = sample(vx=0.2, fx=5.0)
    for _ in range(300):
        before = drive(moving)
    drive.change(make(kind, Coulomb(30.0)))
    after = [drive(moving) for _ in range(300)]
    if kind in "AD":  # the mass carries the velocity on: the velocity does not jump
        path = np.array([row["command"][0] for row in [*drive.rows[297:300], *after]])
        assert np.abs(np.diff(path, 2)).max() <= 1.0 * PERIOD * (1 + 1e-9)
        return
    forces = np.array([float(np.hypot(*row["command"])) for row in after])
    assert np.hypot(*before["command"]) == pytest.approx(4.0, rel=1e-3)
    # On half a cosine from what was there to what is asked for, within the time in which the output comes up.
    assert forces[0] == pytest.approx(4.0, rel=1e-3)
    asked = np.array([float(np.hypot(*row["command_unlimited"])) for row in after])
    most = 0.5 * np.pi * 0.01 * np.abs(asked - 4.0).max()
    assert (np.abs(np.diff(forces)) <= most + np.abs(np.diff(asked)) + 1e-9).all()
    assert forces[250:] == pytest.approx(30.0, rel=1e-2)


@settings(max_examples=12)
@given(
    levels=st.tuples(st.floats(0.5, 8.0), st.floats(0.5, 8.0)),
    viscosities=st.tuples(st.floats(0.0, 8.0), st.floats(0.0, 8.0)),
    speed=st.floats(0.02, 0.2),
)
def test_force_eases_up_and_down_alike_and_says_so(
    levels: tuple[float, float], viscosities: tuple[float, float], speed: float
) -> None:
    before, after = (
        MasslessImpedance(CoulombViscous(*numbers), 6000.0, 10.0) for numbers in zip(levels, viscosities, strict=True)
    )
    drive = Drive(before)
    for _ in range(300):
        drive(sample(vx=speed))
    old = drive.force(sample(vx=speed))
    drive.change(after)
    rows = [drive(sample(vx=speed)) for _ in range(130)]
    forces = np.array([old, *(float(np.hypot(*row["command"])) for row in rows)])
    new = levels[1] + viscosities[1] * speed
    assert forces[-1] == pytest.approx(new, rel=1e-6)
    # The contact itself turns to its new level within a few ticks; what is felt of that takes the whole time.
    assert np.abs(np.diff(forces)).max() <= 0.5 * np.pi * 0.01 * abs(old - new) + 0.01 * max(old, new)
    flagged = [bool(row["status"] & Status.FADE) for row in rows]
    assert flagged == [True] * sum(flagged) + [False] * (130 - sum(flagged))
    same = before.law == after.law
    assert sum(flagged) in ({0} if same else {100, 101})


def test_the_same_parameters_again_are_no_change(begin: Begin) -> None:
    drive = begin(stiff())
    for _ in range(200):
        drive(sample(vx=0.2))
    drive.change(stiff())
    assert drive.force(sample(vx=0.2)) == pytest.approx(4.0)
    assert not drive.rows["status"][-1] & Status.FADE


@pytest.mark.parametrize(("gap", "ticks"), [(1, 4), (2, 8), (8, 8), (9, 100), (90, 100)])
def test_after_a_gap_the_force_comes_up_as_fast_as_it_went_or_as_after_the_start(
    begin: Begin, gap: int, ticks: int
) -> None:
    drive = begin(stiff())
    for _ in range(200):
        drive(sample(vx=0.2))
    down = [drive.force(sample(vx=BAD)) for _ in range(gap)]
    assert down == pytest.approx([2.0, *[0.0] * (gap - 1)])
    up = np.array([drive.force(sample(vx=0.2)) for _ in range(ticks + 20)])
    full = np.flatnonzero(up >= 4.0 * (1 - 1e-9))
    assert abs(int(full[0]) + 1 - ticks) <= 1
    assert (np.diff(up[: full[0]]) > 0.0).all()


def test_bad_samples_in_the_fade_in_do_not_shorten_it(begin: Begin) -> None:
    drive = begin(stiff())
    for _ in range(30):
        drive(sample(vx=0.2))
    drive(sample(vx=BAD))
    up = [drive.force(sample(vx=0.2)) for _ in range(40)]
    assert np.diff(up) == pytest.approx([0.04] * 39)


@every_kind
def test_a_released_dead_man_fades_out_and_a_pressed_one_in_again(begin: Begin, kind: str) -> None:
    drive = begin(kind)
    moving = sample(vx=0.2, fx=5.0)
    for _ in range(300):
        drive(moving)
    released = [drive(moving, permission=int(Permission.RELEASED)) for _ in range(30)]
    assert all(row["status"] & Status.RELEASED for row in released)
    pressed = [drive(moving) for _ in range(150)]
    assert not any(row["status"] & Status.RELEASED for row in pressed)
    if kind in "AD":
        rest = {tuple(row["command"].tolist()) for row in released[9:]}
        assert len(rest) == 1, "it holds"
        travel = [row["command"][0] for row in pressed]
        assert travel[-1] > travel[0]
        assert np.abs(np.diff(travel, 2)).max() / PERIOD**2 <= 5.0 / 0.3
        return
    down = [np.hypot(*row["command"]) for row in released[:9]]
    assert down == pytest.approx(4.0 * np.array([7, 6, 5, 4, 3, 2, 1, 0, 0]) / 8, rel=2e-3, abs=1e-12)
    up = [np.hypot(*row["command"]) for row in pressed[:100]]
    assert up == pytest.approx(4.0 * np.arange(1, 101) / 100, rel=2e-3)


# --- every orderly end -------------------------------------------------------------------------------------------


def ending(device: BenchDevice, clock: Clock, trace: Trace, kind: str, how: End) -> Rows:
    """Run `kind` on `device` for 0.2 s, or until tick 150 where it is ended `how` before."""
    options: dict[str, Any] = {}
    if how is End.APPLICATION_LOST:
        options["supervisor"] = lambda: End.APPLICATION_LOST if clock.tick >= 150 else None
    servo = Servo(device, make(kind, LAWS["coulomb"]), trace, clock=clock, **options)
    if how is End.STOPPED:
        device.disturb = lambda state, number: servo.stop() if number == 150 else None
    assert servo.run(0.2 if how is End.COMPLETED else None) is how
    return trace.since(0)


@every_kind
@pytest.mark.parametrize("how", End)
def test_before_every_orderly_end_the_output_fades_out(trace: Trace, kind: str, how: End) -> None:
    clock = Clock(PERIOD)
    device = BenchDevice(clock, causality_of(kind), fade_in=0.1, max_acceleration=200.0)
    rows = ending(device, clock, trace, kind, how)
    told = (rows["permission"] & Permission.ENDING) != 0
    assert told.tolist() == [False] * (len(rows) - 9) + [True] * 9
    assert rows["status"][-1] & Status.FADE
    if kind in "AD":
        speeds_left = np.hypot(*np.diff(rows["command"][-11:], axis=0).T)
        assert speeds_left[0] > 0.0
        assert (np.diff(speeds_left) < 1e-15).all()
        assert speeds_left[-1] == 0.0
        assert device.written[-1].tolist() == rows["command"][-1].tolist()
    else:
        forces = np.hypot(*rows["command"][-10:].T)
        assert forces == pytest.approx(4.0 * np.array([8, 7, 6, 5, 4, 3, 2, 1, 0, 0]) / 8, rel=5e-2, abs=1e-12)
        assert device.written[-1].tolist() == [0.0, 0.0]
    assert device.closed == 1


@pytest.mark.parametrize("ticks", [1, 2, 5, 9, 17])
def test_a_run_of_few_ticks_fades_within_them(trace: Trace, ticks: int) -> None:
    clock = Clock(PERIOD)
    device = BenchDevice(clock)
    Servo(device, stiff(), trace, clock=clock).run(ticks * PERIOD)
    told = (trace.since(0)["permission"] & Permission.ENDING) != 0
    assert told.sum() == min(9, ticks // 2)
    forces = np.hypot(*np.array(device.written).T)
    assert forces[-1] == 0.0
    assert (np.diff(forces)[len(forces) - 1 - int(told.sum()) :] <= 0.0).all()


# --- rule 5: the dead-man ----------------------------------------------------------------------------------------

HELD = [(60, 250), (300, 301), (400, 500)]
"""From which tick to which the dead-man is held."""


def is_held(tick: int) -> bool:
    return any(first <= tick < last for first, last in HELD)


@pytest.mark.parametrize("dead_man", ["button", "key"])
@every_kind
def test_without_the_dead_man_there_is_no_output(trace: Trace, kind: str, dead_man: str) -> None:
    clock = Clock(PERIOD)
    device = BenchDevice(clock, causality_of(kind), fade_in=0.05, max_acceleration=200.0)
    limits = Limits.of(device.spec, {"dead_man": dead_man})

    def press(state: State, number: int) -> None:
        assert state.buttons == 0
        state.buttons = (DEAD_MAN_BUTTON if is_held(number) and dead_man == "button" else 0) | 2

    device.disturb = press
    key = (lambda: is_held(clock.tick)) if dead_man == "key" else None
    Servo(device, make(kind, LAWS["coulomb"]), trace, clock=clock, limits=limits, key_held=key).run(0.6)
    rows = trace.since(0)
    held = np.array([is_held(tick) for tick in range(600)])
    assert (((rows["permission"] & Permission.RELEASED) == 0) == held).all()
    assert (((rows["status"] & Status.RELEASED) == 0) == held).all()
    quiet = ~held & ~np.array([is_held(tick - back) for tick in range(600) for back in range(10)]).reshape(600, 10).any(
        1
    )
    assert quiet[:60].all()
    assert quiet.sum() > 250
    moved = np.vstack([[0.0, 0.0], np.diff(rows["command"], axis=0)]) if kind in "AD" else rows["command"]
    assert not moved[quiet].any()
    assert moved[200:250].any(axis=1).all()


def test_a_key_nobody_can_hold_is_refused_before_anything_is_opened(trace: Trace) -> None:
    device = BenchDevice(dead_man="key")
    with pytest.raises(ConfigurationError, match="dead_man"):
        Servo(device, stiff(), trace)
    assert device.opened == 0
