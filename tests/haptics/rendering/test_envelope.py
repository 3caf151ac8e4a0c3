"""The rules of the envelope, one by one and in their order, through the rendering that applies them.

Each drive made by `begin` is computed again at the end of its test and must give the same bits."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from haptics import CompliantAdmittance, Coulomb, CoulombViscous, MasslessImpedance, RigidAdmittance
from haptics.device import Causality, State
from haptics.errors import ConfigurationError
from haptics.records import Permission, Status
from haptics.rendering.envelope import (
    DEAD_MAN_SWITCHES,
    SPEED_MARGIN,
    UNUSABLE,
    Limits,
    limit_approach,
    limit_driving,
    plausibility_flag,
    sample_flag,
)
from haptics.rendering.rendering import Rendering
from tests.haptics.doubles import make_spec
from tests.haptics.drives import BAD, PERIOD, Array, Drive, every_kind, sample, stiff, wound_up
from tests.haptics.strategies import make


@given(st.floats(-3, 3), st.floats(-0.1, 0.1), st.sampled_from([1e-3, 4e-3]))
def test_reference_stays_inside_and_brakes_within_its_limit(v, x, period):
    allowed, flag = limit_approach(v, x, -0.1, 0.1, 50.0, period)
    assert (flag == 0) == (allowed == v)
    assert abs(allowed) <= abs(v)
    assert allowed * v >= 0.0
    for _ in range(500):
        x += period * allowed
        assert -0.1 - 1e-12 <= x <= 0.1 + 1e-12
        slower, _ = limit_approach(allowed, x, -0.1, 0.1, 50.0, period)
        assert abs(allowed - slower) <= 50.0 * period * (1 + 1e-6) + 1e-9
        allowed = slower


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", range(6))
def test_number_that_is_not_finite_is_flagged(bad, where):
    sample = [0.0] * 6
    sample[where] = bad
    assert sample_flag(*sample, 0.0, 5e-3) == Status.NOT_FINITE


def test_invalid_limits_are_refused():
    spec = make_spec()
    for bad in ({"max_farce": 1.0}, {"max_force": math.nan}):
        with pytest.raises(ConfigurationError, match=r"max_f"):
            Limits.for_device(spec, bad)
    wider = replace(Limits.for_device(spec), max_force=2.0 * spec.max_force)
    with pytest.raises(ConfigurationError, match="only be tightened"):
        Rendering(MasslessImpedance(Coulomb(1.0), 1000.0, 2.0), spec, wider)


def arm(element=None, **limits):
    return Drive(element or RigidAdmittance(Coulomb(6.0), 2.0), limits, fade_in=0.0)


def test_reference_stops_at_the_fence_without_wind_up():
    drive = arm()
    for _ in range(3000):
        row = drive(sample(fx=30.0))
    assert row["command"] == pytest.approx([0.1, 0.0], abs=1e-15)
    assert row["status"] & Status.WORKSPACE
    back = drive(sample(fx=-8.0))["command"]
    assert back[0] == pytest.approx(0.1 - 1e-3 * 1e-3 * (8.0 - 6.0) / 2.0, abs=1e-12)


@pytest.mark.parametrize("stiffness", [100.0, 20000.0])
def test_compliant_reference_at_the_fence_stores_no_tension(stiffness):
    drive = arm(CompliantAdmittance(Coulomb(6.0), 2.0, stiffness, 10.0))
    rows = [drive(sample(fx=8.0)) for _ in range(5000)]
    assert rows[3999]["command"][0] == pytest.approx(0.1)
    assert rows[4999]["displacement"].tolist() == rows[4000]["displacement"].tolist()
    travel = [drive(sample())["command"][0] for _ in range(2000)]
    # The reference returns by the tension of sliding, F/K, and the swing of the mass, as away from the fence.
    assert 0.1 - min(travel) <= 2.0 * 6.0 / stiffness + 1e-6


def test_arm_outside_its_workspace_returns_slowly():
    drive = arm()
    path = np.array([drive(sample(x=-0.25, fx=fx))["command"][0] for fx in [0.0] * 50 + [-20.0] * 50])
    assert (path == -0.25).all()
    path = np.array([drive(sample(x=-0.25, fx=20.0))["command"][0] for _ in range(100)])
    assert 0.0 < np.diff(path).max() <= 1e-3


components = st.floats(-50.0, -1e-6) | st.just(0.0) | st.floats(1e-6, 50.0)
vectors = st.tuples(components, components)
speeds = st.floats(0.01, 5.0)


# --- rule 2: age --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", [2.5e-4, 1e-3, 3e-3])
def test_sample_is_stale_beyond_the_largest_age_only(period):
    """The difference of two times that are multiples of a period is not exact."""
    flags = {sample_flag(*[0.0] * 6, k * period - (k - 5) * period, 5 * period) for k in range(5, 5000)}
    assert flags == {0}
    assert sample_flag(*[0.0] * 6, 5.001 * period, 5 * period) == Status.STALE
    assert sample_flag(*[0.0] * 6, math.nan, 5 * period) == Status.STALE


# --- rule 3: plausibility ----------------------------------------------------------------------------------------


@given(vectors, vectors, st.floats(1e-4, 1.0), speeds, st.floats(-math.pi, math.pi))
def test_plausibility_follows_the_speed_in_any_direction(way, v, duration, speed, angle):
    far, fast = math.hypot(*way) - speed * duration, math.hypot(*v) - speed
    assume(min(abs(far), abs(fast)) > 1e-9)
    expected = Status.IMPLAUSIBLE if far > 0.0 or fast > 0.0 else 0
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    assert plausibility_flag(*way, *v, duration, speed) == expected
    assert plausibility_flag(*(turn @ way), *(turn @ v), duration, speed) == expected


@pytest.mark.parametrize(
    ("force", "expected"),
    [((-30.0, 40.0), 0), ((-30.1, 40.0), Status.IMPLAUSIBLE), ((1e300, -1e300), Status.IMPLAUSIBLE)],
)
@pytest.mark.parametrize("kind", ["A", "D"])
def test_force_beyond_the_sensor_range_moves_no_arm(kind, force, expected):
    drive = Drive(make(kind, CoulombViscous(4.0, 3.0)), max_force=50.0)
    for _ in range(50):
        drive(sample(0.05, -0.03, fx=10.0))
    held = drive.rows[-1]["command"].copy()
    row = drive(sample(0.05, -0.03, fx=force[0], fy=force[1]))
    assert row["status"] & Status.IMPLAUSIBLE == expected
    assert bool((row["command"] == held).all()) == bool(expected)
    # The position was trusted all the time, so the next sample is plausible.
    for _ in range(20):
        drive(sample(0.05, -0.03, fx=force[0], fy=force[1]))
    assert drive(sample(0.06, -0.03, fx=10.0))["status"] & Status.IMPLAUSIBLE == 0


# --- rule 3: following error --------------------------------------------------------------------------------------


FOLLOWING = 0.004


def pushed_against_a_wall(kind, ticks, **facts):
    """Push an arm that stays where it is."""
    drive = Drive(make(kind, CoulombViscous(4.0, 3.0)), max_following_error=FOLLOWING, fade_in=0.0, **facts)
    for _ in range(ticks):
        drive(sample(0.03, -0.02, fx=20.0, fy=5.0))
    return drive


@pytest.mark.parametrize("kind", ["A", "D"])
def test_reference_of_a_blocked_arm_is_held(kind):
    rows = pushed_against_a_wall(kind, 300).rows
    ahead = np.hypot(*(rows["command"] - rows["position"]).T)
    flagged = rows["status"] & Status.FOLLOWING_ERROR != 0
    first = int(np.argmax(flagged))
    assert first > 5
    assert flagged[first:].all()
    assert (rows["command"][first:] == rows["command"][first - 1]).all()
    assert (ahead[: first - 1] <= FOLLOWING).all()
    assert FOLLOWING < ahead[-1] < FOLLOWING + np.hypot(*np.diff(rows["command"][:first], axis=0).T).max() + 1e-12
    assert not (rows["status"][first:] & UNUSABLE & ~Status.FOLLOWING_ERROR).any()


@pytest.mark.parametrize("kind", ["A", "D"])
def test_arm_that_caught_up_continues_from_rest(kind):
    """The blocked push leaves neither momentum nor tension."""
    drive = pushed_against_a_wall(kind, 100, max_speed=5.0)
    held = drive.rows[-1]["command"].copy()
    row = drive(sample(*held, fx=20.0, fy=5.0))
    assert not row["status"] & UNUSABLE
    new = Drive(make(kind, CoulombViscous(4.0, 3.0)), fade_in=0.0)
    first = new(sample(*held, fx=20.0, fy=5.0))
    assert row["command"] - held == pytest.approx(first["command"] - held, abs=1e-15)
    drive.verify()


@every_kind
def test_following_error_needs_a_limit_and_a_reference(kind):
    """An arm without a stated limit is not watched; an impedance device has no reference and ignores its force."""
    drive = Drive(make(kind, CoulombViscous(4.0, 3.0)), **({} if kind in "AD" else {"max_following_error": FOLLOWING}))
    for k in range(300):
        drive(sample(0.03, -0.02, fx=20.0, fy=5.0) if kind in "AD" else sample(0.0002 * k, 0.0, 0.2, fx=1e6))
    rows = drive.rows
    assert not (rows["status"] & (Status.FOLLOWING_ERROR | Status.IMPLAUSIBLE)).any()
    if kind in "AD":
        assert np.hypot(*(rows[-1]["command"] - (0.03, -0.02))) > 10.0 * FOLLOWING


def test_jump_stays_implausible_over_time(begin):
    drive = begin(stiff())
    for _ in range(10):
        drive(sample(0.05, 0.03))
    flags = {int(drive(sample())["status"]) for _ in range(3000)}
    assert flags == {int(Status.IMPLAUSIBLE)}
    assert not drive(sample(0.05, 0.03))["status"] & UNUSABLE


@pytest.mark.parametrize(("gap", "way", "believed"), [(4, 0.049, True), (4, 0.051, False), (0, 0.011, False)])
def test_plausible_distance_grows_over_missing_samples(begin, gap, way, believed):
    for missing in (lambda drive: [drive(sample(BAD)) for _ in range(gap)], lambda drive: None):
        drive = begin(stiff())
        drive(sample(0.01, 0.02))
        without = missing(drive)
        row = drive(sample(0.01 + way, 0.02), skipped=0 if without else gap)
        assert (row["status"] & Status.IMPLAUSIBLE == 0) == believed


@pytest.mark.parametrize(("way", "believed"), [(0.0149, True), (0.0151, False)])
def test_plausible_distance_counts_the_age_of_the_last_sample(begin, way, believed):
    drive = begin(stiff())
    for age in (0.0, 1e-3, 2e-3, 3e-3, 4e-3, 5e-3):  # the same sample, tick by tick: its driver is kept waiting
        assert not drive(sample(0.01, 0.02), age)["status"] & UNUSABLE
    row = drive(sample(0.01 + way, 0.02), 4.5e-3)  # 1.5 ms after it; a hand reaches 10 m/s
    assert (row["status"] & Status.IMPLAUSIBLE == 0) == believed
    again = drive(sample(0.01 + way, 0.02), 0.0)
    assert (again["status"] & Status.IMPLAUSIBLE == 0) == believed, "a jump is none, however long one waits"


# --- rule 9: the speed limit -------------------------------------------------------------------------------------


@given(vectors, vectors, speeds)
def test_speed_limit_removes_only_the_driving_part(force, v, limit):
    x, y, flag = limit_driving(*force, *v, limit)
    speed, power = math.hypot(*v), np.dot(force, v)
    size = math.hypot(*force) * speed
    assume(abs(power) > 1e-12 * size)
    left, across = np.dot((x, y), v), x * v[1] - y * v[0]
    assert math.hypot(x, y) <= math.hypot(*force) * (1 + 1e-12)
    assert across == pytest.approx(force[0] * v[1] - force[1] * v[0], abs=1e-12 * size)
    if flag:
        assert speed > limit * (1 - SPEED_MARGIN)
        assert -1e-12 * size <= left <= power, "never turned round"
    else:
        assert (x, y) == force
    if speed >= limit:
        assert left <= 1e-12 * size


@pytest.mark.parametrize(
    ("speed", "share"), [(0.45, 1.0), (0.475, 0.5), (0.49, 0.2), (0.5, 0.0), (3.0, 0.0), (-0.475, 1.0), (-3.0, 1.0)]
)
def test_driving_force_fades_near_the_speed_limit(begin, speed, share):
    """At negative speeds the force brakes and is unchanged."""
    row = wound_up(begin)(sample(x=0.05, vx=-speed))
    asked = row["command_unlimited"][0]
    assert asked == pytest.approx(-5.0 + 0.1 * speed)
    assert row["command"][0] == (asked if share == 1.0 else pytest.approx(share * asked, abs=1e-12))
    assert bool(row["status"] & Status.SPEED) == (share < 1.0)


# --- rule 7 with warm motors -----------------------------------------------------------------------------------------

WARM = {"max_force": 5.0, "continuous_force": 2.0, "full_force_time": 0.2}


def test_full_force_lasts_for_the_stated_time_and_then_falls_to_the_continuous_force(begin):
    drive = begin(stiff(8.0), fade_in=0.0, **WARM)
    for k in range(3000):
        drive(sample(x=1e-4 * k, vx=0.1), skipped=2 if k == 1000 else 0)
    rows, forces = drive.rows, np.hypot(*drive.rows["command"].T)
    reached = int(np.flatnonzero(forces == 5.0)[0])
    warm = rows["status"] & Status.THERMAL != 0
    first = int(np.flatnonzero(warm)[0])
    assert first - reached == pytest.approx(200, abs=5)
    assert (warm == (np.arange(3000) >= first)).all()
    assert (forces[reached:first] == 5.0).all() and (np.diff(forces[first:]) <= 0.0).all()
    assert forces[-1] == pytest.approx(2.0, rel=1e-3)
    assert np.abs(np.diff(forces[first:])).max() < 0.1, "the participant feels no jump"


def test_motors_cool_while_the_force_is_small_and_in_ticks_without_samples(begin):
    drive = begin(stiff(8.0), **WARM)
    for k in range(1000):
        drive(sample(x=1e-4 * k, vx=0.1))
    for _ in range(3000):
        drive(sample(x=BAD))
    assert drive.force(sample(x=0.1, vx=0.1)) > 0.0
    for k in range(100):
        row = drive(sample(x=0.1 + 1e-4 * k, vx=0.1))
    assert np.hypot(*row["command"]) == 5.0 and not row["status"] & Status.THERMAL


@settings(max_examples=25)
@given(
    st.floats(0.2, 9.0),
    st.floats(0.02, 0.5),
    st.lists(st.tuples(st.floats(0.0, 12.0), st.floats(-4.0, 4.0), st.integers(1, 150)), min_size=1, max_size=8),
)
def test_heat_of_any_forces_stays_below_the_heat_of_the_continuous_force(continuous, duration, forces):
    drive = Drive(stiff(12.0), max_force=10.0, continuous_force=continuous, full_force_time=duration, max_energy=1e6)
    for size, angle, count in forces:
        drive.change(stiff(max(size, 0.01)))
        for _ in range(count):
            drive(sample(vx=0.5 * math.cos(angle), vy=0.5 * math.sin(angle)))
    # A filter of first order of the squared force, whose time constant full force from cold defines.
    rate = -math.log(1.0 - 0.9 * (continuous / 10.0) ** 2) / duration
    heat = 0.0
    for x, y in drive.rows["command"]:
        heat += (1.0 - math.exp(-rate * PERIOD)) * (math.hypot(x, y) ** 2 / continuous**2 - heat)
        assert heat < 1.0
    drive.verify()


def test_device_without_thermal_limit_has_full_force_forever(begin):
    for facts in ({}, {"continuous_force": 2.0}, {"continuous_force": 5.0, "full_force_time": 0.01}):
        drive = begin(stiff(8.0), **{"max_force": 5.0, **facts})
        for k in range(500):
            row = drive(sample(x=1e-4 * k, vx=0.1))
        assert np.hypot(*row["command"]) == 5.0 and not row["status"] & Status.THERMAL


# --- rule 10: the energy limit -----------------------------------------------------------------------------------


def test_loop_beyond_the_energy_limit_gives_no_more(begin):
    drive = begin(stiff(), {"max_energy": 1e-3})
    x = 0.0
    for _ in range(200):  # until it slides to the right: a force of 4 N to the left
        x += 2e-4
        drive(sample(x=x, vx=0.2))
    given_energy = []
    for _ in range(20):  # the handle is driven to the left, and the element is not told
        x -= 2e-4
        given_energy.append(drive(sample(x=x))["injected_energy"])
    assert np.diff(given_energy) == pytest.approx([4.0 * 2e-4] * 19, rel=1e-9)
    row = drive(sample(x=x, vx=-0.01))
    assert row["command_unlimited"][0] < 0.0
    assert row["command"].tolist() == [0.0, 0.0]
    assert row["status"] & Status.ENERGY
    assert drive(sample(x=x, vx=0.01))["command"][0] < 0.0, "what brakes is not taken away"
    for _ in range(100):  # dissipation lowers the injected energy
        x += 2e-4
        row = drive(sample(x=x, vx=0.2))
    assert row["injected_energy"] == 0.0
    assert not row["status"] & Status.ENERGY


def test_arm_beyond_the_energy_limit_does_not_oppose_the_hand(begin):
    drive = begin(RigidAdmittance(Coulomb(1.0), 2.0), {"max_energy": 1e-3})
    x = 0.0
    for _ in range(150):
        x += 2e-4
        before = drive(sample(x=x, fx=10.0))
    assert before["status"] == 0
    for _ in range(20):  # the arm goes where the hand does not want it, and the element is not told
        x -= 1e-3
        before = drive(sample(x=x, fx=10.0))
    assert before["injected_energy"] > 0.1
    against = drive(sample(x=x, fx=-10.0))
    assert against["command_unlimited"][0] > before["command"][0]
    assert against["status"] & Status.ENERGY
    assert against["command"].tolist() == before["command"].tolist()
    along = [drive(sample(x=x, fx=-10.0))["command"][0] for _ in range(20)]
    assert along[-1] < against["command"][0], "with the hand it may move"


# --- limits ------------------------------------------------------------------------------------------------------


UPPER = [entry.name for entry in fields(Limits) if entry.name not in ("fade_in", "dead_man", "passivity_control")]


@pytest.mark.parametrize("name", UPPER)
@given(factor=st.floats(1e-3, 1e3))
def test_limit_can_only_be_lowered(name, factor):
    spec = make_spec()
    own = getattr(spec, name)
    if factor <= 1.0:
        assert getattr(Limits.for_device(spec, {name: factor * own}), name) == factor * own
    else:
        with pytest.raises(ConfigurationError, match=rf"envelope\.{name} = .*at most .*the limit of bench"):
            Limits.for_device(spec, {name: factor * own})


@given(st.floats(0.0, 10.0))
def test_fade_in_can_only_be_lengthened(fade_in):
    spec = make_spec(fade_in=0.1)
    if fade_in >= 0.1:
        assert Limits.for_device(spec, {"fade_in": fade_in}).fade_in == fade_in
    else:
        with pytest.raises(ConfigurationError, match=r"envelope\.fade_in = .*at least 0\.1, the limit of bench"):
            Limits.for_device(spec, {"fade_in": fade_in})


@pytest.mark.parametrize("own", DEAD_MAN_SWITCHES)
@pytest.mark.parametrize("wanted", DEAD_MAN_SWITCHES)
def test_dead_man_can_only_be_added(own, wanted):
    spec = make_spec(dead_man=own)
    assert Limits.for_device(spec).dead_man == own
    if own in ("none", wanted):
        assert Limits.for_device(spec, {"dead_man": wanted}).dead_man == wanted
    else:
        with pytest.raises(ConfigurationError, match=rf"envelope\.dead_man = '{wanted}': must be '{own}'"):
            Limits.for_device(spec, {"dead_man": wanted})


def test_passivity_control_needs_an_impedance_device():
    assert Limits.for_device(make_spec(mass=0.2), {"passivity_control": True}).passivity_control
    with pytest.raises(ConfigurationError, match="needs an impedance device"):
        Limits.for_device(make_spec(Causality.ADMITTANCE), {"passivity_control": True})


# --- the order ---------------------------------------------------------------------------------------------------


def test_sample_checks_have_an_order(begin):
    drive, far = begin(stiff()), sample(1.0, 1.0)
    drive(sample())
    rows = drive(sample(1.0, BAD), age=1.0), drive(far, age=1.0), drive(far)
    assert [row["status"] & UNUSABLE for row in rows] == [Status.NOT_FINITE, Status.STALE, Status.IMPLAUSIBLE]


def test_force_is_faded_then_clamped_then_slew_limited(begin):
    drive = begin(stiff(30.0), {"max_force_rate": 2000.0}, fade_in=0.01)
    forces, flags = [], []
    for _ in range(30):
        row = drive(sample(vx=0.8))
        forces.append(-row["command"][0])
        flags.append(int(row["status"]))
    asked = -drive.rows["command_unlimited"][:, 0]
    faded = np.minimum(np.arange(1, 31) / 10.0, 1.0) * asked
    slowed, last = [], 0.0
    for goal in np.minimum(faded, 10.0):
        last = min(goal, last + 2.0)
        slowed.append(last)
    assert forces == pytest.approx(slowed)
    assert [bool(flag & Status.LIMITED) for flag in flags] == (faded > 10.0).tolist()
    assert Status.SLEW in Status(flags[4])


@pytest.mark.parametrize(
    ("state", "skipped", "flag"),
    [(sample(x=0.05, vx=-0.55), 0, Status.SPEED), (sample(x=-0.15, vx=0.01), 30, Status.WORKSPACE)],
    ids=["speed limit", "fence"],
)
def test_removed_force_is_not_slew_limited(begin, state, skipped, flag):
    row = wound_up(begin, max_force_rate=100.0)(state, skipped=skipped)
    assert row["command"].tolist() == [0.0, 0.0]
    assert row["status"] & flag


def test_added_damping_is_faded_and_clamped(begin):
    """Stretched back and forth with a delay that the element is not told: the controller has to act."""
    facts = {"mass": 0.2, "damping": 1.0, "delay": 2e-3, "max_force": 10.0, "max_energy": 10.0}
    drive = begin(MasslessImpedance(Coulomb(20.0), 6000.0, 0.0), {"passivity_control": True}, **facts)
    acted = False
    for k in range(400):
        x, v = 3e-3 * math.sin(0.2 * k), 0.6 * math.cos(0.2 * k)
        permission = int(Permission.RELEASED) if k >= 300 else 0
        row = drive(sample(x=x, vx=v), permission=permission)
        acted = acted or bool(row["status"] & Status.PASSIVITY)
        assert np.hypot(*row["command"]) <= 10.0 * (1 + 1e-12)
        if k >= 310:
            assert row["command"].tolist() == [0.0, 0.0]
    assert acted


# --- all of it ---------------------------------------------------------------------------------------------------


def story(kind, angle, seed):
    """Return the commands of a drive with all kinds of disturbances, seen in coordinates turned by `angle`."""
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    generator = np.random.default_rng(seed)
    # Far from the limits of the workspace, which do not turn.
    walls = {"workspace_min": (-9.0, -9.0), "workspace_max": (9.0, 9.0), "max_energy": 0.01}
    drive = Drive(make(kind, CoulombViscous(4.0, 3.0)), {"max_speed": 0.3, "max_force_rate": 3000.0}, **walls)
    v, x = np.zeros(2), np.array((0.03, 0.01))
    for k in range(400):
        v = 0.98 * v + 0.03 * generator.standard_normal(2)
        x = x + PERIOD * v
        force = 40.0 * v + generator.standard_normal(2)
        bad = generator.random() < 0.02 or 150 <= k < 165
        permission = int(Permission.RELEASED) if 250 <= k < 270 else 0
        state = State(0.0, turn @ x, turn @ (v if not bad else v * 1e3), turn @ force)
        drive(state, permission=permission, skipped=int(generator.random() < 0.02) * 3)
        if k == 200:
            drive.change(make(kind, CoulombViscous(6.0, 3.0)))
    seen = drive.rows
    for flag in (Status.IMPLAUSIBLE, Status.FADE, Status.RELEASED):
        assert (seen["status"] & flag).any()
    drive.verify()
    commands: Array = seen["command"] @ turn
    return commands


@every_kind
@given(angle=st.floats(-math.pi, math.pi), seed=st.integers(0, 3))
@settings(max_examples=5)
def test_envelope_turns_with_the_coordinates(kind, angle, seed):
    straight = story(kind, 0.0, seed)
    assert story(kind, angle, seed) == pytest.approx(straight, abs=1e-6 * max(1.0, np.abs(straight).max()))
