"""The matrices of the sampled loops against the real elements in a loop with exactly integrated devices."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptics.design import Coupling, Handle, PositionServo, growth, sliding_matrix, stuck_matrix
from haptics.design.loops import LONGEST_DELAY
from haptics.device import Causality
from haptics.elements.models import Element, InertialImpedance, MasslessImpedance, RigidAdmittance
from haptics.errors import ConfigurationError
from haptics.friction.laws import Coulomb
from tests.haptics.design.plants import ExactArm, held_path
from tests.haptics.doubles import make_spec
from tests.haptics.strategies import log_floats

ALWAYS_STICKS, ALWAYS_SLIDES = Coulomb(1e12), Coulomb(0.0)
DELAYS = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.floats(0.0, 4.0))


def stuck(model: str, coupling: Coupling) -> Element:
    parameters = coupling.stiffness, coupling.damping, coupling.period
    if model == "B":
        return InertialImpedance(ALWAYS_STICKS, 0.3, *parameters)
    return MasslessImpedance(ALWAYS_STICKS, *parameters)


@settings(max_examples=15)
@given(
    model=st.sampled_from("BC"),
    mass=log_floats(0.02, 5.0),
    own=st.one_of(st.just(0.0), log_floats(0.01, 20.0)),
    delay=DELAYS,
    stiffness=log_floats(10.0, 5e4),
    damping=log_floats(0.1, 100.0),
    period=log_floats(2e-4, 5e-3),
)
def test_a_held_handle_moves_as_the_powers_of_its_matrix(
    model: str, mass: float, own: float, delay: float, stiffness: float, damping: float, period: float
) -> None:
    handle, coupling = Handle(mass, own, delay * period), Coupling(stiffness, damping, period)
    element = stuck(model, coupling)
    matrix = stuck_matrix(coupling, handle)
    ticks = min(40, int(18.0 / max(math.log(growth(matrix)), 0.1)))
    path = held_path(handle, lambda velocity: float(element.step((velocity, 0.0))[0]), period, ticks)
    state = np.zeros(len(matrix))
    state[1] = 0.01
    predicted = []
    for _ in range(ticks):
        predicted.append(state[0])
        state = matrix @ state
    assert element.sticking
    np.testing.assert_allclose(path, predicted, rtol=1e-6, atol=1e-9 * np.abs(predicted).max())


@settings(max_examples=7)
@given(
    mass=log_floats(0.02, 10.0),
    frequency=log_floats(3.0, 100.0),
    ratio=st.floats(0.3, 2.0),
    knows=st.booleans(),
    delay=DELAYS,
    grip=st.tuples(log_floats(10.0, 3000.0), log_floats(0.5, 50.0), st.floats(0.0, 0.5)),
    period=log_floats(5e-4, 4e-3),
)
def test_a_sliding_mass_on_an_arm_moves_as_the_powers_of_its_matrix(
    mass: float, frequency: float, ratio: float, knows: bool, delay: float, grip: tuple[float, ...], period: float
) -> None:
    servo = PositionServo(frequency, ratio, knows, delay * period, *grip)
    element = RigidAdmittance(ALWAYS_SLIDES, mass, period)
    arm = ExactArm(servo, velocity=0.01)
    matrix = sliding_matrix(mass, servo, period)
    state = np.zeros(len(matrix))
    state[1] = state[-1] = 0.01
    path, predicted = [], []
    for _ in range(30):
        path.append(arm.state[0])
        predicted.append(state[0])
        arm.command(float(element.step((arm.shown_force(period), 0.0))[0]))
        arm.advance(period)
        state = matrix @ state
    np.testing.assert_allclose(path, predicted, rtol=1e-6, atol=1e-9 * np.abs(predicted).max())


@pytest.mark.parametrize(
    ("mass", "own", "delay", "expected", "digits"),
    [
        (0.2, 0.0, 0, 0.982, 3),
        (0.2, 0.0, 1, 0.9988, 4),
        (0.2, 0.0, 2, 1.0155, 4),
        (0.2, 6.0, 2, 0.9997, 4),
        (0.05, 0.0, 0, 0.927, 3),
        (0.05, 0.0, 1, 1.017, 3),
        (0.05, 0.0, 2, 1.087, 3),
    ],
)
def test_the_parameters_of_the_paper_on_a_light_joystick(
    mass: float, own: float, delay: int, expected: float, digits: int
) -> None:
    matrix = stuck_matrix(Coupling(6000.0, 10.0), Handle(mass, own, delay * 1e-3))
    assert round(growth(matrix), digits) == expected


def test_an_estimator_delays_the_loop_as_much_as_the_device_does() -> None:
    coupling = Coupling(3000.0, 10.0)
    late = stuck_matrix(coupling, Handle(0.2, 1.0, delay=1.5e-3))
    smooth = stuck_matrix(coupling, Handle(0.2, 1.0, delay=0.5e-3, velocity_lag=1e-3))
    np.testing.assert_array_equal(late, smooth)


def test_a_very_long_delay_is_cut_so_that_the_matrix_stays_small() -> None:
    assert len(stuck_matrix(Coupling(100.0, 1.0), Handle(1.0, delay=10.0))) == 4 + LONGEST_DELAY
    assert len(sliding_matrix(1.0, PositionServo(30.0, delay=10.0), 1e-3)) == 6 + LONGEST_DELAY


def test_the_data_sheet_says_what_the_handle_is() -> None:
    spec = make_spec(mass=0.3, damping=1.5, delay=2e-3, position_resolution=1e-5, velocity_lag=1e-3)
    assert Handle.of(spec) == Handle(0.3, 1.5, 2e-3, 1e-5, 1e-3)
    assert Handle.of(make_spec(mass=0.3)) == Handle(0.3)
    assert Handle.of(make_spec(damping=1.0)) is None


def test_the_data_sheet_says_what_the_servo_is_and_a_grip_is_firm_unless_it_says_so() -> None:
    spec = make_spec(Causality.ADMITTANCE, servo_frequency=20.0, grip_stiffness=0.0)
    servo = PositionServo.of(spec)
    assert servo is not None
    assert (servo.frequency, servo.damping_ratio, servo.knows_velocity, servo.grip_stiffness) == (20.0, 1.0, False, 0.0)
    assert servo.grip_damping > 0.0
    assert PositionServo.of(make_spec(Causality.ADMITTANCE)) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Handle(0.0), r"handle\.mass = 0\.0: must be .*greater than 0 kg"),
        (lambda: Handle(1.0, delay=-1e-3), r"handle\.delay = -0\.001"),
        (lambda: Coupling(-1.0, 1.0), r"coupling\.stiffness = -1\.0"),
        (lambda: Coupling(1.0, math.nan), r"coupling\.damping = nan"),
        (lambda: PositionServo(0.0), r"servo\.frequency = 0\.0"),
    ],
)
def test_a_number_that_is_not_allowed_is_named(make: object, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()  # type: ignore[operator]


def test_nothing_is_compiled_for_it() -> None:
    code = (
        "import sys, haptics.design as d\n"
        "d.suggest(d.Handle(0.2, 1.0, 1e-3, 2e-5), force=4.0)\n"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
