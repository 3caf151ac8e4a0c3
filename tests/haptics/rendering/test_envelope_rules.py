"""The envelope's rules through the rendering that applies them: what each takes away, and in which order.

Every drive through a rendering is computed once more at the end of its test: all of it must come out with the same
bits.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from haptics import Coulomb, CoulombViscous, MasslessImpedance, RigidAdmittance
from haptics.device import Causality, State
from haptics.errors import ConfigurationError
from haptics.records import Permission, Status
from haptics.rendering.envelope import (
    DEAD_MEN,
    SPEED_MARGIN,
    UNUSABLE,
    Limits,
    limit_driving,
    limit_energy,
    plausibility_flag,
    sample_flag,
    without_part_along,
)
from tests.haptics.doubles import make_spec
from tests.haptics.drives import BAD, PERIOD, Array, Begin, Drive, every_kind, sample, stiff
from tests.haptics.strategies import make

numbers = st.floats(-50.0, -1e-6) | st.just(0.0) | st.floats(1e-6, 50.0)
vectors = st.tuples(numbers, numbers)
speeds = st.floats(0.01, 5.0)


# --- rule 2: age --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", [2.5e-4, 1e-3, 3e-3])
def test_an_age_that_is_just_allowed_is_allowed_at_every_instant(period: float) -> None:
    """The difference of two times that are multiples of a period is not exact."""
    flags = {sample_flag(*[0.0] * 6, k * period - (k - 5) * period, 5 * period) for k in range(5, 5000)}
    assert flags == {0}
    assert sample_flag(*[0.0] * 6, 5.001 * period, 5 * period) == Status.STALE


# --- rule 3: plausibility ----------------------------------------------------------------------------------------


@given(vectors, vectors, st.floats(1e-4, 1.0), speeds, st.floats(-math.pi, math.pi))
def test_plausible_is_what_the_speed_allows_in_any_direction(
    way: tuple[float, float], v: tuple[float, float], duration: float, speed: float, angle: float
) -> None:
    far, fast = math.hypot(*way) - speed * duration, math.hypot(*v) - speed
    assume(min(abs(far), abs(fast)) > 1e-9)
    expected = Status.IMPLAUSIBLE if far > 0.0 or fast > 0.0 else 0
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    assert plausibility_flag(*way, *v, duration, speed) == expected
    assert plausibility_flag(*(turn @ way), *(turn @ v), duration, speed) == expected


@pytest.mark.parametrize(
    ("force", "expected"),
    [
        ((50.0, 0.0), 0),
        ((-30.0, 40.0), 0),
        ((50.1, 0.0), Status.IMPLAUSIBLE),
        ((-40.0, 40.0), Status.IMPLAUSIBLE),
        ((1e300, -1e300), Status.IMPLAUSIBLE),
    ],
)
@pytest.mark.parametrize("kind", ["A", "D"])
def test_a_force_beyond_the_range_of_its_sensor_moves_no_arm(
    kind: str, force: tuple[float, float], expected: int
) -> None:
    drive = Drive(make(kind, CoulombViscous(4.0, 3.0)), max_force=50.0)
    for _ in range(50):
        drive(sample(0.05, -0.03, fx=10.0))
    held = drive.rows[-1]["command"].copy()
    row = drive(sample(0.05, -0.03, fx=force[0], fy=force[1]))
    assert row["status"] & Status.IMPLAUSIBLE == expected
    assert bool((row["command"] == held).all()) == bool(expected)
    # The position was trusted all the time: what comes after needs no way back.
    for _ in range(20):
        drive(sample(0.05, -0.03, fx=force[0], fy=force[1]))
    assert drive(sample(0.06, -0.03, fx=10.0))["status"] & Status.IMPLAUSIBLE == 0


# --- rule 3: following error --------------------------------------------------------------------------------------

LIMIT = 0.004


def pushed_against_a_wall(kind: str, ticks: int, **facts: Any) -> Drive:
    """Push an arm that stays where it is."""
    drive = Drive(make(kind, CoulombViscous(4.0, 3.0)), max_following_error=LIMIT, fade_in=0.0, **facts)
    for _ in range(ticks):
        drive(sample(0.03, -0.02, fx=20.0, fy=5.0))
    return drive


@pytest.mark.parametrize("kind", ["A", "D"])
def test_the_reference_of_a_blocked_arm_is_held_where_it_is_too_far_ahead(kind: str) -> None:
    rows = pushed_against_a_wall(kind, 300).rows
    ahead = np.hypot(*(rows["command"] - rows["position"]).T)
    flagged = rows["status"] & Status.FOLLOWING_ERROR != 0
    first = int(np.argmax(flagged))
    assert first > 5
    assert flagged[first:].all()
    assert (rows["command"][first:] == rows["command"][first - 1]).all()
    assert (ahead[: first - 1] <= LIMIT).all()
    assert LIMIT < ahead[-1] < LIMIT + np.hypot(*np.diff(rows["command"][:first], axis=0).T).max() + 1e-12
    assert not (rows["status"][first:] & UNUSABLE & ~Status.FOLLOWING_ERROR).any()


@pytest.mark.parametrize("kind", ["A", "D"])
def test_an_arm_that_has_caught_up_goes_on_from_rest(kind: str) -> None:
    """What was pushed meanwhile is neither momentum nor tension: it goes on as one that was never pushed before."""
    drive = pushed_against_a_wall(kind, 100, max_speed=5.0)
    held = drive.rows[-1]["command"].copy()
    row = drive(sample(*held, fx=20.0, fy=5.0))
    assert not row["status"] & UNUSABLE
    new = Drive(make(kind, CoulombViscous(4.0, 3.0)), fade_in=0.0)
    first = new(sample(*held, fx=20.0, fy=5.0))
    assert row["command"] - held == pytest.approx(first["command"] - held, abs=1e-15)
    drive.verify()


@pytest.mark.parametrize("kind", ["A", "D"])
def test_an_arm_that_nobody_knows_the_limit_of_is_not_watched(kind: str) -> None:
    drive = Drive(make(kind, CoulombViscous(4.0, 3.0)))
    for _ in range(300):
        drive(sample(0.03, -0.02, fx=20.0, fy=5.0))
    assert not (drive.rows["status"] & Status.FOLLOWING_ERROR).any()
    assert np.hypot(*(drive.rows[-1]["command"] - (0.03, -0.02))) > 10.0 * LIMIT


@pytest.mark.parametrize("kind", ["B", "C"])
def test_a_device_that_takes_forces_has_no_reference_to_be_far_from(kind: str) -> None:
    drive = Drive(make(kind, CoulombViscous(4.0, 3.0)), max_following_error=LIMIT)
    for k in range(20):
        drive(sample(0.002 * k, 0.0, 2.0))
    assert not (drive.rows["status"] & Status.FOLLOWING_ERROR).any()


@pytest.mark.parametrize("kind", ["B", "C"])
def test_a_device_that_takes_forces_has_no_use_for_one_that_it_measures(kind: str) -> None:
    drive = Drive(make(kind, CoulombViscous(4.0, 3.0)))
    assert drive(sample(0.05, -0.03, fx=1e6))["status"] & Status.IMPLAUSIBLE == 0


@every_kind
@pytest.mark.parametrize(
    "refused",
    [
        (sample(), 0.0, Status.IMPLAUSIBLE),
        (sample(0.05, -0.03, 11.0, 0.0), 0.0, Status.IMPLAUSIBLE),
        (sample(0.05, -0.03, 0.2, fy=BAD), 0.0, Status.NOT_FINITE),
        (sample(0.05, -0.03, 0.2, 0.1, 9.0, 9.0), 6e-3, Status.STALE),
    ],
    ids=["zero", "too fast", "nan", "old"],
)
def test_a_refused_sample_never_reaches_the_element(
    begin: Begin, kind: str, refused: tuple[State, float, Status]
) -> None:
    drive = begin(kind)
    state, age, flag = refused
    for k in range(200):
        drive(sample(0.05, -0.03, 0.1 * math.sin(0.1 * k), 0.05, 9.0 * math.sin(0.1 * k), 6.0))
    before = drive.rows[-1]
    memory = drive.rendering.core["memory"].copy()
    for number in range(1, 60):
        row = drive(state, age)
        assert row["status"] == flag
        let_go = kind == "D" and number > 1  # what is held has no tension, which would move it when it comes up again
        assert row["displacement"].tolist() == ([0.0, 0.0] if let_go else before["displacement"].tolist())
        assert drive.rendering.core["memory"].tolist() == memory.tolist()
        expected = before["command"] if kind in "AD" else (0.5 if number == 1 else 0.0) * before["command"]
        assert row["command"].tolist() == expected.tolist()


def test_waiting_does_not_make_a_jump_plausible(begin: Begin) -> None:
    drive = begin(stiff())
    for _ in range(10):
        drive(sample(0.05, 0.03))
    flags = {int(drive(sample())["status"]) for _ in range(3000)}
    assert flags == {int(Status.IMPLAUSIBLE)}
    assert not drive(sample(0.05, 0.03))["status"] & UNUSABLE


@pytest.mark.parametrize(("gap", "way", "believed"), [(4, 0.049, True), (4, 0.051, False), (0, 0.011, False)])
def test_after_missing_samples_the_handle_may_be_as_far_as_a_hand_can_take_it(
    begin: Begin, gap: int, way: float, believed: bool
) -> None:
    for missing in (lambda drive: [drive(sample(BAD)) for _ in range(gap)], lambda drive: None):
        drive = begin(stiff())
        drive(sample(0.01, 0.02))
        without = missing(drive)
        row = drive(sample(0.01 + way, 0.02), skipped=0 if without else gap)
        assert (row["status"] & Status.IMPLAUSIBLE == 0) == believed


@pytest.mark.parametrize(("way", "believed"), [(0.0149, True), (0.0151, False)])
def test_a_handle_whose_sample_was_old_has_had_more_time(begin: Begin, way: float, believed: bool) -> None:
    drive = begin(stiff())
    for age in (0.0, 1e-3, 2e-3, 3e-3, 4e-3, 5e-3):  # the same sample, tick by tick: its driver is kept waiting
        assert not drive(sample(0.01, 0.02), age)["status"] & UNUSABLE
    row = drive(sample(0.01 + way, 0.02), 4.5e-3)  # 1.5 ms after it; a hand reaches 10 m/s
    assert (row["status"] & Status.IMPLAUSIBLE == 0) == believed
    again = drive(sample(0.01 + way, 0.02), 0.0)
    assert (again["status"] & Status.IMPLAUSIBLE == 0) == believed, "a jump is none, however long one waits"


# --- rule 9: the speed limit -------------------------------------------------------------------------------------


@given(vectors, vectors, speeds, st.floats(-math.pi, math.pi))
def test_the_speed_limit_takes_away_what_drives_and_nothing_else(
    force: tuple[float, float], v: tuple[float, float], limit: float, angle: float
) -> None:
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
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    turned = limit_driving(*(turn @ force), *(turn @ v), limit)
    assume(abs(power) > 1e-9 * size and abs(speed - limit * (1 - SPEED_MARGIN)) > 1e-9)
    assert turned[:2] == pytest.approx(turn @ (x, y), abs=1e-7 * (1.0 + math.hypot(*force)))


@given(vectors, vectors, st.floats(0.0, 1.0))
def test_taking_a_share_of_a_component_away_leaves_the_rest(
    force: tuple[float, float], along: tuple[float, float], share: float
) -> None:
    x, y = without_part_along(*force, *along, share)
    power, left = np.dot(force, along), np.dot((x, y), along)
    size = math.hypot(*force) * math.hypot(*along)
    if power <= 0.0:
        assert (x, y) == force
    else:
        assert left == pytest.approx((1.0 - share) * power, abs=1e-12 * size)


def wound_up(begin: Begin, tighter: dict[str, Any] | None = None) -> Drive:
    """Return a drive whose soft spring is stretched by 50 mm along x and drives the handle back with 5 N."""
    drive = begin(MasslessImpedance(Coulomb(8.0), 100.0, 0.0), {"max_speed": 0.5, **(tighter or {})}, max_energy=10.0)
    for k in range(500):
        row = drive(sample(x=1e-4 * k, vx=0.1))
    assert row["command"].tolist() == pytest.approx([-5.0, 0.0])
    return drive


@pytest.mark.parametrize(
    ("speed", "share"), [(0.2, 1.0), (0.45, 1.0), (0.475, 0.5), (0.49, 0.2), (0.5, 0.0), (3.0, 0.0)]
)
def test_near_the_speed_limit_a_driving_force_goes(begin: Begin, speed: float, share: float) -> None:
    row = wound_up(begin)(sample(x=0.05, vx=-speed))
    asked = row["command_unlimited"][0]
    assert asked == pytest.approx(-5.0 + 0.1 * speed)
    assert row["command"][0] == pytest.approx(share * asked, abs=1e-12)
    assert bool(row["status"] & Status.SPEED) == (share < 1.0)


@pytest.mark.parametrize("speed", [0.2, 0.475, 3.0])
def test_the_speed_limit_leaves_a_force_that_brakes(begin: Begin, speed: float) -> None:
    row = wound_up(begin)(sample(x=0.05, vx=speed))
    assert row["command"].tolist() == row["command_unlimited"].tolist()
    assert not row["status"] & Status.SPEED


def test_the_speed_limit_leaves_what_acts_across_the_motion(begin: Begin) -> None:
    row = wound_up(begin)(sample(x=0.05, vx=-0.4, vy=0.4))
    along, across = np.array((-1.0, 1.0)) / math.sqrt(2.0), np.array((1.0, 1.0)) / math.sqrt(2.0)
    asked, command = row["command_unlimited"], row["command"]
    assert np.dot(asked, along) > 3.0
    assert np.dot(command, along) == pytest.approx(0.0, abs=1e-12)
    assert np.dot(command, across) == pytest.approx(np.dot(asked, across))


def test_what_the_fence_leaves_of_a_force_does_not_drive(begin: Begin) -> None:
    drive = begin(MasslessImpedance(Coulomb(8.0), 100.0, 0.0), {"max_speed": 0.5}, max_energy=10.0)
    for k in range(100):
        row = drive(sample(-3e-4 * k, -2e-4 * k, -0.3, -0.2))
    assert row["command"].tolist() == pytest.approx([3.0, 2.0])
    # Outside on the right and fast: as a whole the force brakes, but its upper component alone would drive.
    row = drive(sample(0.15, 0.0, -0.5, 0.5), skipped=50)
    asked = row["command_unlimited"]
    assert np.dot(asked, row["velocity"]) < 0.0 < asked[1]
    assert np.dot(row["command"], row["velocity"]) <= 0.0
    assert row["command"][0] <= 0.0
    assert row["status"] & Status.WORKSPACE


# --- rule 10: the energy limit -----------------------------------------------------------------------------------


@given(vectors, vectors, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_the_energy_limit_acts_beyond_its_limit_only(
    force: tuple[float, float], along: tuple[float, float], injected: float, limit: float
) -> None:
    x, y, flag = limit_energy(*force, *along, injected, limit)
    size = math.hypot(*force) * math.hypot(*along)
    assume(abs(np.dot(force, along)) > 1e-12 * size)
    if injected <= limit or np.dot(force, along) <= 0.0:
        assert (x, y, flag) == (*force, 0)
    else:
        assert flag == Status.ENERGY
        assert np.dot((x, y), along) <= 1e-12 * size
        assert math.hypot(x, y) <= math.hypot(*force) * (1 + 1e-12)


def test_a_loop_that_gives_too_much_energy_gives_no_more(begin: Begin) -> None:
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
    for _ in range(100):  # what friction takes out counts against it
        x += 2e-4
        row = drive(sample(x=x, vx=0.2))
    assert row["injected_energy"] == 0.0
    assert not row["status"] & Status.ENERGY


def test_an_arm_that_gives_too_much_energy_does_not_move_against_the_hand(begin: Begin) -> None:
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
def test_a_limit_can_be_made_smaller_only(name: str, factor: float) -> None:
    spec = make_spec()
    own = getattr(spec, name)
    if factor <= 1.0:
        assert getattr(Limits.of(spec, {name: factor * own}), name) == factor * own
    else:
        with pytest.raises(ConfigurationError, match=rf"envelope\.{name} = .*at most .*the limit of bench"):
            Limits.of(spec, {name: factor * own})


@given(st.floats(0.0, 10.0))
def test_a_fade_in_can_be_made_longer_only(fade_in: float) -> None:
    spec = make_spec(fade_in=0.1)
    if fade_in >= 0.1:
        assert Limits.of(spec, {"fade_in": fade_in}).fade_in == fade_in
    else:
        with pytest.raises(ConfigurationError, match=r"envelope\.fade_in = .*at least 0\.1, the limit of bench"):
            Limits.of(spec, {"fade_in": fade_in})


@pytest.mark.parametrize("own", DEAD_MEN)
@pytest.mark.parametrize("wanted", DEAD_MEN)
def test_a_dead_man_can_be_added_but_not_left_out(own: str, wanted: str) -> None:
    spec = make_spec(dead_man=own)
    assert Limits.of(spec).dead_man == own
    if own in ("none", wanted):
        assert Limits.of(spec, {"dead_man": wanted}).dead_man == wanted
    else:
        with pytest.raises(ConfigurationError, match=rf"envelope\.dead_man = '{wanted}': must be '{own}'"):
            Limits.of(spec, {"dead_man": wanted})


def test_damping_cannot_be_added_to_an_admittance_device() -> None:
    assert Limits.of(make_spec(mass=0.2), {"passivity_control": True}).passivity_control
    with pytest.raises(ConfigurationError, match="needs an impedance device"):
        Limits.of(make_spec(Causality.ADMITTANCE), {"passivity_control": True})


# --- the order ---------------------------------------------------------------------------------------------------


def flag_of(drive: Drive, state: State, **options: Any) -> int:
    return int(drive(state, **options)["status"]) & UNUSABLE


def test_rules_1_to_3_are_asked_in_their_order(begin: Begin) -> None:
    drive = begin(stiff())
    drive(sample())
    far = sample(1.0, 1.0)
    assert flag_of(drive, sample(1.0, BAD), age=1.0) == Status.NOT_FINITE
    assert flag_of(drive, far, age=1.0) == Status.STALE
    assert flag_of(drive, far) == Status.IMPLAUSIBLE


def test_a_force_is_faded_then_clamped_then_slowed_down(begin: Begin) -> None:
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


def test_what_the_speed_limit_takes_away_is_not_slowed_down(begin: Begin) -> None:
    row = wound_up(begin, {"max_force_rate": 100.0})(sample(x=0.05, vx=-0.55))
    assert row["command"].tolist() == [0.0, 0.0]
    assert row["status"] & Status.SPEED


def test_what_the_fence_takes_away_is_not_slowed_down(begin: Begin) -> None:
    row = wound_up(begin, {"max_force_rate": 100.0})(sample(x=-0.15, vx=0.01), skipped=30)
    assert row["command"].tolist() == [0.0, 0.0]
    assert row["status"] & Status.WORKSPACE


def test_added_damping_is_faded_and_clamped_with_the_rest(begin: Begin) -> None:
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


def story(kind: str, angle: float, seed: int) -> Array:
    """Return the commands of a drive with all kinds of disturbances, seen in coordinates turned by `angle`."""
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    generator = np.random.default_rng(seed)
    # Far from the walls: they are those of the device, and do not turn.
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
def test_the_envelope_turns_with_the_coordinates(kind: str, angle: float, seed: int) -> None:
    straight = story(kind, 0.0, seed)
    assert story(kind, angle, seed) == pytest.approx(straight, abs=1e-6 * max(1.0, np.abs(straight).max()))
