"""How the output comes up and goes down: start, changes, gaps, stalls, the dead-man switch and every orderly end.

Each drive made by `begin` is computed again at the end of its test and must give the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from haptics import Clock, ConfigurationError, Coulomb, CoulombViscous, MasslessImpedance, RigidAdmittance, Servo
from haptics.device import DEAD_MAN_BUTTON
from haptics.records import Permission, Status
from haptics.rendering.envelope import Limits
from haptics.servo.control import Supervision
from haptics.servo.kernels import APPLICATION_ENDED
from haptics.servo.servo import EndReason
from tests.haptics.doubles import BenchDevice
from tests.haptics.drives import BAD, PERIOD, Drive, causality_of, every_kind, sample, stiff, wound_up
from tests.haptics.strategies import LAWS, make

# --- rules 5 and 6: fades ----------------------------------------------------------------------------------------


def test_force_fades_in_after_the_start(begin):
    drive = begin(stiff())
    forces, shares = [], []
    for _ in range(150):
        forces.append(drive.force(sample(vx=0.2)))
        shares.append(drive.assistance)
    assert forces[20:100] == pytest.approx(4.0 * np.arange(21, 101) / 100.0)
    assert forces[100:] == pytest.approx([4.0] * 50)
    assert shares == pytest.approx(np.minimum(np.arange(1, 151) / 100.0, 1.0)), "friction compensation fades in alike"
    faded = (drive.rows["status"] & Status.FADE) != 0
    assert faded.tolist() == [True] * int(faded.sum()) + [False] * int((~faded).sum())
    assert 98 <= faded.sum() <= 100


def test_hand_force_fades_in_on_an_admittance(begin):
    drive = begin(RigidAdmittance(Coulomb(6.0), 2.0))
    path = np.array([drive(sample(fx=10.0))["command"][0] for _ in range(150)])
    acceleration = np.diff(path, 2) / PERIOD**2
    assert path[:59].tolist() == [0.0] * 59, "below the friction the mass sticks"
    assert acceleration[62:98] == pytest.approx((10.0 * np.arange(65, 101) / 100.0 - 6.0) / 2.0, abs=1e-6)
    assert acceleration[100:] == pytest.approx([2.0] * 48, abs=1e-6)


@every_kind
def test_parameter_change_changes_the_force_gradually(begin, kind):
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
    # On half a cosine from the old to the new force, within the fade-in time.
    assert forces[0] == pytest.approx(4.0, rel=1e-3)
    asked = np.array([float(np.hypot(*row["command_unlimited"])) for row in after])
    most = 0.5 * np.pi * 0.01 * np.abs(asked - 4.0).max()
    assert (np.abs(np.diff(forces)) <= most + np.abs(np.diff(asked)) + 1e-9).all()
    assert forces[250:] == pytest.approx(30.0, rel=1e-2)


@settings(max_examples=12)
@example(levels=(4.0, 4.0), viscosities=(0.0, 0.0), speed=0.2)
@given(
    levels=st.tuples(st.floats(0.5, 8.0), st.floats(0.5, 8.0)),
    viscosities=st.tuples(st.floats(0.0, 8.0), st.floats(0.0, 8.0)),
    speed=st.floats(0.02, 0.2),
)
def test_force_eases_up_and_down_alike_with_a_flag(levels, viscosities, speed):
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
    # The contact itself turns to its new level within a few ticks; the output takes the whole fade-in time.
    assert np.abs(np.diff(forces)).max() <= 0.5 * np.pi * 0.01 * abs(old - new) + 0.01 * max(old, new)
    flagged = [bool(row["status"] & Status.FADE) for row in rows]
    assert flagged == [True] * sum(flagged) + [False] * (130 - sum(flagged))
    same = before.law == after.law
    assert sum(flagged) in ({0} if same else {100, 101})


@pytest.mark.parametrize(("gap", "ticks"), [(1, 4), (2, 8), (8, 8), (9, 100), (90, 100)])
def test_force_returns_after_a_gap(begin, gap, ticks):
    drive = begin(stiff())
    for _ in range(200):
        drive(sample(vx=0.2))
    down = [drive.force(sample(vx=BAD)) for _ in range(gap)]
    assert down == pytest.approx([2.0, *[0.0] * (gap - 1)])
    up = np.array([drive.force(sample(vx=0.2)) for _ in range(ticks + 20)])
    full = np.flatnonzero(up >= 4.0 * (1 - 1e-9))
    assert abs(int(full[0]) + 1 - ticks) <= 1
    assert (np.diff(up[: full[0]]) > 0.0).all()


def test_bad_samples_do_not_shorten_the_fade_in(begin):
    drive = begin(stiff())
    for _ in range(30):
        drive(sample(vx=0.2))
    drive(sample(vx=BAD))
    up = [drive.force(sample(vx=0.2)) for _ in range(40)]
    assert np.diff(up) == pytest.approx([0.04] * 39)


@every_kind
def test_dead_man_fades_the_output_out_and_in(begin, kind):
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


def ending(device, clock, trace, kind, how):
    """Run `kind` on `device` for 0.2 s, or until tick 150 where it is ended `how` before."""
    servo = Servo(device, make(kind, LAWS["coulomb"]), trace, clock=clock)
    if how is EndReason.APPLICATION_LOST:
        servo.supervision.end_reason = lambda _: APPLICATION_ENDED if clock.tick >= 150 else 0
    if how is EndReason.STOPPED:
        device.disturb = lambda state, number: servo.stop() if number == 150 else None
    assert servo.run(0.2 if how is EndReason.COMPLETED else None) is how
    return trace.since(0)


@every_kind
@pytest.mark.parametrize("how", EndReason)
def test_output_fades_out_before_every_orderly_end(trace, kind, how):
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
def test_short_run_fades_within_its_ticks(trace, ticks):
    clock = Clock(PERIOD)
    device = BenchDevice(clock)
    Servo(device, stiff(), trace, clock=clock).run(ticks * PERIOD)
    told = (trace.since(0)["permission"] & Permission.ENDING) != 0
    assert told.sum() == min(9, ticks // 2)
    forces = np.hypot(*np.array(device.written).T)
    assert forces[-1] == 0.0
    assert (np.diff(forces)[len(forces) - 1 - int(told.sum()) :] <= 0.0).all()


# --- rule 5: the dead-man ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dead_man", ["button", "key"])
@every_kind
def test_released_dead_man_gives_no_output(trace, kind, dead_man):
    clock, held = Clock(PERIOD), np.zeros(600, bool)
    for first, last in ((60, 250), (300, 301), (400, 500)):
        held[first:last] = True
    device = BenchDevice(clock, causality_of(kind), fade_in=0.05, max_acceleration=200.0)
    limits = Limits.for_device(device.spec, {"dead_man": dead_man})

    supervision = Supervision()
    key_ns = supervision.arrays["controls"]["key_ns"]

    def press(state, number):
        assert state.buttons == 0
        key_ns[0] = 2**62 if held[number] and dead_man == "key" else 0
        state.buttons = (DEAD_MAN_BUTTON if held[number] and dead_man == "button" else 0) | 2

    device.disturb = press
    Servo(device, make(kind, LAWS["coulomb"]), trace, clock=clock, limits=limits, supervision=supervision).run(0.6)
    rows = trace.since(0)
    assert (((rows["permission"] & Permission.RELEASED) == 0) == held).all()
    assert (((rows["status"] & Status.RELEASED) == 0) == held).all()
    quiet = ~np.convolve(held, np.ones(10))[:600].astype(bool)  # released for ten ticks
    assert quiet[:60].all()
    assert quiet.sum() > 250
    moved = np.vstack([[0.0, 0.0], np.diff(rows["command"], axis=0)]) if kind in "AD" else rows["command"]
    assert not moved[quiet].any()
    assert moved[200:250].any(axis=1).all()


def test_dead_man_key_without_a_keyboard_is_refused_before_opening(trace):
    device = BenchDevice(dead_man="key")
    with pytest.raises(ConfigurationError, match="dead_man"):
        Servo(device, stiff(), trace)
    assert device.opened == 0


# --- friction compensation ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("speed", "allowed"), [(0.2, 1.0), (0.44, 1.0), (0.46, 0.0), (0.6, 0.0)])
def test_compensation_stops_near_the_speed_limit(begin, speed, allowed):
    drive = wound_up(begin)
    assert drive.assistance == 1.0
    row = drive(sample(x=0.05, vx=-speed))
    assert bool(row["status"] & Status.SPEED) == (allowed == 0.0)
    assert drive.assistance == allowed


def test_compensation_stops_beyond_the_energy_limit(begin):
    drive = wound_up(begin, max_energy=1e-3)
    for k in range(30):  # driven back by the spring, which the element is not told
        drive(sample(x=0.05 - 1e-3 * k))
    row = drive(sample(x=0.02, vx=-0.05))
    assert row["status"] & (Status.ENERGY | Status.SPEED) == Status.ENERGY
    assert drive.assistance == 0.0
    drive(sample(x=0.02, vx=0.05))
    assert drive.assistance == 1.0


def test_compensation_stops_on_bad_samples_and_release(begin):
    drive = wound_up(begin)
    for expected in (0.5, 0.0, 0.0):
        drive(sample(BAD))
        assert drive.assistance == expected
    drive = wound_up(begin)
    found = []
    for _ in range(10):
        drive(sample(x=0.05), permission=int(Permission.RELEASED))
        found.append(drive.assistance)
    np.testing.assert_allclose(found, np.maximum(1.0 - np.arange(1, 11) / 8.0, 0.0))


# --- after a pause -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("skipped", "lets_go"), [(0, False), (19, False), (20, True), (30, True), (39, True)])
def test_output_fades_in_after_a_stall_beyond_the_watchdog(begin, skipped, lets_go):
    drive = begin(stiff(), watchdog=0.0205)
    for _ in range(150):
        drive(sample(vx=0.2))
    row = drive(sample(vx=0.2), skipped=skipped)
    assert np.hypot(*row["command"]) == pytest.approx(0.04 if lets_go else 4.0)
    assert bool(row["status"] & Status.FADE) == lets_go
    assert drive.force(sample(vx=0.2)) == pytest.approx(0.08 if lets_go else 4.0)


@pytest.mark.parametrize("gap", [1, 5])
def test_mass_follows_the_handle_after_bad_samples(begin, gap):
    drive = begin(make("B", LAWS["coulomb"]), fade_in=0.0)
    for _ in range(300):
        before = drive(sample(vx=0.3))
    for _ in range(gap):
        drive(sample(vx=BAD))
    after = [drive(sample(vx=0.3)) for _ in range(20)]
    for row in after:
        np.testing.assert_allclose(row["command_unlimited"], before["command_unlimited"], rtol=1e-3)
