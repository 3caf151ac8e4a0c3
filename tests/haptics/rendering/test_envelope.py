"""The envelope's rules, one by one and in their order, through the rendering that applies them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics import CompliantAdmittance, Coulomb, MasslessImpedance, RigidAdmittance
from haptics.device import Causality, State
from haptics.errors import ConfigurationError
from haptics.records import ROW, Status
from haptics.rendering.envelope import Limits, approach, limit_norm, limit_slew, push_inside, sample_flag
from haptics.rendering.rendering import Rendering
from tests.haptics.doubles import make_spec

numbers = st.floats(-1e3, 1e3)
positive = st.floats(1e-3, 1e3)


@given(numbers, numbers, positive)
def test_the_norm_clamp_keeps_the_direction(x: float, y: float, limit: float) -> None:
    cx, cy, flag = limit_norm(x, y, limit)
    assert math.hypot(cx, cy) <= limit * (1 + 1e-12)
    if math.hypot(x, y) <= limit:
        assert (cx, cy, flag) == (x, y, 0)
    else:
        assert flag == Status.LIMITED
        assert cx * y == pytest.approx(cy * x, abs=1e-9 * limit * (abs(x) + abs(y)))
        assert cx * x + cy * y > 0


@given(numbers, numbers, numbers, numbers, positive)
def test_the_slew_limit_goes_straight_towards_the_goal(x: float, y: float, ax: float, ay: float, step: float) -> None:
    cx, cy, flag = limit_slew(x, y, ax, ay, step)
    moved, asked = math.hypot(cx - ax, cy - ay), math.hypot(x - ax, y - ay)
    assert moved <= step * (1 + 1e-9) + 1e-9
    assert math.hypot(x - cx, y - cy) <= asked + 1e-9
    assert (flag == 0) == (asked <= step)


@given(numbers, st.floats(-0.2, 0.2))
def test_outside_the_workspace_no_force_points_further_out(force: float, position: float) -> None:
    allowed, flag = push_inside(force, position, -0.1, 0.1)
    outwards = abs(position) > 0.1 and force != 0.0 and (force > 0) == (position > 0)
    assert allowed == (0.0 if outwards else force)
    assert (flag == Status.WORKSPACE) == outwards


@given(st.floats(-3, 3), st.floats(-0.1, 0.1), st.sampled_from([1e-3, 4e-3]))
def test_a_reference_stays_inside_and_brakes_no_harder_than_it_may(v: float, x: float, period: float) -> None:
    allowed, flag = approach(v, x, -0.1, 0.1, 50.0, period)
    assert (flag == 0) == (allowed == v)
    assert abs(allowed) <= abs(v)
    assert allowed * v >= 0.0
    for _ in range(500):
        x += period * allowed
        assert -0.1 - 1e-12 <= x <= 0.1 + 1e-12
        slower, _ = approach(allowed, x, -0.1, 0.1, 50.0, period)
        assert abs(allowed - slower) <= 50.0 * period * (1 + 1e-6) + 1e-9
        allowed = slower


@given(st.floats(-1, 1), st.floats(0.1001, 1.0))
def test_from_outside_a_reference_can_only_move_in(v: float, x: float) -> None:
    allowed, _ = approach(v, x, -0.1, 0.1, 50.0, 1e-3)
    assert allowed == min(v, 0.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", range(6))
def test_any_number_that_is_not_finite_is_noticed(bad: float, where: int) -> None:
    sample = [0.0] * 6
    sample[where] = bad
    assert sample_flag(*sample, 0.0, 5e-3) == Status.NOT_FINITE


@pytest.mark.parametrize(("age", "flag"), [(0.0, 0), (5e-3, 0), (5.1e-3, Status.STALE), (math.nan, Status.STALE)])
def test_an_old_sample_is_stale(age: float, flag: int) -> None:
    assert sample_flag(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, age, 5e-3) == flag


def test_limits_can_be_tightened_but_not_widened() -> None:
    spec = make_spec()
    assert Limits.of(spec, {"max_force": 3.0}).max_force == 3.0
    with pytest.raises(ConfigurationError, match=r"envelope\.max_force = 11: must be at most 10, the limit of bench"):
        Limits.of(spec, {"max_force": 11.0})
    with pytest.raises(ConfigurationError, match=r"max_farce"):
        Limits.of(spec, {"max_farce": 1.0})
    with pytest.raises(ConfigurationError, match=r"max_force"):
        Limits.of(spec, {"max_force": math.nan})


def test_limits_made_by_hand_cannot_be_wider_than_the_device_either() -> None:
    spec = make_spec()
    wider = replace(Limits.of(spec), max_force=2.0 * spec.max_force)
    with pytest.raises(ConfigurationError, match="only be tightened"):
        Rendering(MasslessImpedance(Coulomb(1.0), 1000.0, 2.0), spec, wider)


def impedance(force: float = 4.0, **limits: float) -> Rendering:
    spec = make_spec()
    return Rendering(MasslessImpedance(Coulomb(force), 6000.0, 10.0), spec, Limits.of(spec, limits))


def admittance(**limits: float) -> Rendering:
    spec = make_spec(Causality.ADMITTANCE)
    return Rendering(RigidAdmittance(Coulomb(6.0), 2.0), spec, Limits.of(spec, limits))


def tick(rendering: Rendering, state: State, age: float = 0.0) -> tuple[np.ndarray, np.void]:
    rows = np.zeros(1, ROW)
    command = rendering.tick(state, age, rows, 0, (0, 0.0, 0.0, 0)).copy()
    return command, rows[0]


def moving(vx: float, x: float = 0.0, fx: float = 0.0) -> State:
    return State(0.0, np.array((x, 0.0)), np.array((vx, 0.0)), np.array((fx, 0.0)))


def test_a_bad_sample_gives_the_safe_output_and_leaves_the_element_alone() -> None:
    rendering = impedance()
    for _ in range(50):
        before, _ = tick(rendering, moving(0.1))
    command, row = tick(rendering, moving(math.nan))
    assert command == pytest.approx(0.5 * before)
    assert row["status"] == Status.NOT_FINITE
    command, row = tick(rendering, moving(0.1), age=1.0)
    assert command.tolist() == [0.0, 0.0]
    assert row["status"] == Status.STALE
    after, row = tick(rendering, moving(0.1))
    assert row["status"] == 0
    assert after == pytest.approx(before, abs=1e-9)


def test_an_admittance_device_holds_while_samples_are_bad_and_starts_from_rest() -> None:
    rendering = admittance()
    for _ in range(50):
        last, _ = tick(rendering, moving(0.0, fx=20.0))
    held, row = tick(rendering, moving(0.0, fx=math.inf))
    assert held.tolist() == last.tolist()
    assert row["status"] == Status.NOT_FINITE
    resumed, _ = tick(rendering, moving(0.0, fx=5.0))  # below the friction: the mass stays where it was stopped
    assert resumed.tolist() == last.tolist()


def test_the_clamp_is_recorded_beside_what_was_asked_for() -> None:
    rendering = impedance(force=20.0)
    for _ in range(50):
        command, row = tick(rendering, moving(0.2))
    assert command == pytest.approx([-10.0, 0.0])
    assert row["command_unlimited"] == pytest.approx([-20.0, 0.0])
    assert row["status"] & Status.LIMITED


def test_the_slew_limit_bounds_every_change_of_force() -> None:
    rendering = impedance(max_force_rate=500.0)
    forces = [tick(rendering, moving(0.2 if k % 40 < 20 else -0.2))[0] for k in range(200)]
    steps = np.linalg.norm(np.diff(forces, axis=0), axis=1)
    assert steps.max() == pytest.approx(0.5)


def test_an_admittance_reference_stops_at_the_fence_and_does_not_wind_up() -> None:
    rendering = admittance()
    for _ in range(3000):
        command, row = tick(rendering, moving(0.0, fx=30.0))
    assert command == pytest.approx([0.1, 0.0], abs=1e-15)
    assert row["status"] & Status.WORKSPACE
    back, _ = tick(rendering, moving(0.0, fx=-8.0))
    assert back[0] == pytest.approx(0.1 - 1e-3 * 1e-3 * (8.0 - 6.0) / 2.0, abs=1e-12)


@pytest.mark.parametrize("stiffness", [100.0, 20000.0])
def test_a_compliant_reference_at_the_fence_stores_no_tension(stiffness: float) -> None:
    spec = make_spec(Causality.ADMITTANCE)
    rendering = Rendering(CompliantAdmittance(Coulomb(6.0), 2.0, stiffness, 10.0), spec)
    for _ in range(4000):
        command, _ = tick(rendering, moving(0.0, fx=8.0))
    assert command[0] == pytest.approx(0.1)
    _, row = tick(rendering, moving(0.0, fx=8.0))
    for _ in range(1000):
        _, later = tick(rendering, moving(0.0, fx=8.0))
    assert later["displacement"].tolist() == row["displacement"].tolist()
    travel = [tick(rendering, moving(0.0))[0][0] for _ in range(2000)]
    # What comes back is the tension of sliding, F/K, and the swing of the mass on that spring, as away from the fence.
    assert 0.1 - min(travel) <= 2.0 * 6.0 / stiffness + 1e-6


def test_an_arm_left_outside_its_workspace_is_not_thrown_back() -> None:
    rendering = admittance()
    path = np.array([tick(rendering, moving(0.0, x=-0.25, fx=fx))[0][0] for fx in [0.0] * 50 + [-20.0] * 50])
    assert (path == -0.25).all()
    path = np.array([tick(rendering, moving(0.0, x=-0.25, fx=20.0))[0][0] for _ in range(100)])
    assert 0.0 < np.diff(path).max() <= 1e-3


def test_an_admittance_reference_respects_speed_and_acceleration() -> None:
    rendering = admittance(max_speed=0.05, max_acceleration=1.0)
    path = np.array([tick(rendering, moving(0.0, fx=30.0))[0][0] for _ in range(200)])
    speed = np.diff(path) / 1e-3
    assert speed.max() == pytest.approx(0.05)
    assert np.abs(np.diff(speed)).max() <= 1e-3 * (1 + 1e-6)


def test_an_admittance_device_starts_where_it_is() -> None:
    command, _ = tick(admittance(), moving(0.0, x=0.04))
    assert command.tolist() == [0.04, 0.0]


def test_an_admittance_device_is_told_nothing_before_its_first_good_sample() -> None:
    rendering = admittance()
    command, row = tick(rendering, moving(math.nan))
    assert np.isnan(command).all()
    assert np.isnan(row["command"]).all()
    assert rendering.safe_outputs == ()
    command, _ = tick(rendering, moving(0.0, x=0.03))
    assert command.tolist() == [0.03, 0.0]
    assert [output.tolist() for output in rendering.safe_outputs] == [[0.03, 0.0]]
