"""What is said about an element on a device, and that silence means it is all right."""

import json
import math

import pytest

from haptics.design import Advice, Handle, PositionServo, Severity, advise, mass_limit, stiffness_limit
from haptics.device import Causality, DeviceSpec
from haptics.elements.models import Element, InertialImpedance, MasslessImpedance, RigidAdmittance
from haptics.friction.closed_form import ClosedForm
from haptics.friction.laws import Coulomb, CoulombViscous, Stribeck
from tests.haptics.doubles import make_spec

HANDLE = Handle(0.2, 1.0, 0.5e-3, 10e-6)
JOYSTICK = make_spec(mass=0.2, damping=1.0, delay=0.5e-3, position_resolution=10e-6)
ARM = make_spec(Causality.ADMITTANCE, max_force=50.0, servo_frequency=30.0)


def said(element: Element, spec: DeviceSpec) -> dict[str, Advice]:
    return {advice.bound: advice for advice in advise(element, spec)}


def test_less_friction_than_the_device_has_left_of_its_own_is_warned_of() -> None:
    rough = make_spec(mass=0.2, damping=1.0, delay=0.5e-3, position_resolution=10e-6, least_friction=0.5)
    advice = said(model_c(300.0, force=0.4), rough)["friction"]
    assert (advice.severity, advice.value, advice.limit) == (Severity.WARNING, 0.4, 0.5)
    assert "0.5 N of friction left of its own" in advice.text
    for level in (0.5, 0.6):
        assert "friction" not in said(model_c(300.0, force=level), rough)


def model_c(stiffness: float, damping: float = 10.0, force: float = 4.0) -> Element:
    return MasslessImpedance(Coulomb(force), stiffness, damping)


def test_parameters_with_a_margin_need_no_words() -> None:
    assert advise(model_c(4500.0), JOYSTICK) == []
    assert advise(RigidAdmittance(Coulomb(6.0), 2.0), ARM) == []


def test_a_contact_that_gives_way_far_or_swings_long_is_warned_of_with_a_better_coupling() -> None:
    soft = said(model_c(1000.0), JOYSTICK)["presliding"]
    assert (soft.severity, soft.value, soft.limit) == (Severity.WARNING, 4e-3, 1e-3)
    assert "4 mm (F/K) before the contact slides" in soft.text
    assert "choose element.stiffness = 12400 and element.damping = 27.6: 0.323 mm" in soft.text
    assert said(model_c(3000.0), JOYSTICK)["presliding"].severity is Severity.NOTE
    swings = said(model_c(2500.0, damping=2.0), JOYSTICK)["settling"]
    assert swings.severity is Severity.WARNING
    assert swings.value > 0.5
    assert "with the hand off; choose element.stiffness = 12400" in swings.text


@pytest.mark.parametrize(
    ("share", "severity"), [(1.01, Severity.WARNING), (0.99, Severity.NOTE), (0.51, Severity.NOTE)]
)
@pytest.mark.parametrize("cls", [MasslessImpedance, InertialImpedance])
def test_a_stiffness_is_judged_by_its_limit(share: float, severity: Severity, cls: type[Element]) -> None:
    limit = stiffness_limit(HANDLE, 10.0)
    inertia = {"mass": 0.1} if cls is InertialImpedance else {}
    advice = said(cls(law=Coulomb(4.0), stiffness=share * limit, damping=10.0, **inertia), JOYSTICK)["stiffness"]  # type: ignore[call-arg]
    assert (advice.severity, advice.limit, advice.value) == (severity, limit, share * limit)
    assert ("lower it" in advice.text) is (severity is Severity.WARNING)


def test_the_lag_of_an_estimator_counts() -> None:
    smoothed = make_spec(mass=0.2, damping=1.0, delay=0.5e-3, velocity_lag=1e-3)
    assert "stiffness" not in said(model_c(3000.0), JOYSTICK)
    assert said(model_c(3000.0), smoothed)["stiffness"].limit == stiffness_limit(Handle(0.2, 1.0, 1.5e-3), 10.0)


def test_too_much_damping_is_called_that() -> None:
    advice = said(model_c(600.0, damping=400.0), JOYSTICK)
    assert advice["damping"].severity is Severity.WARNING
    assert "stiffness" not in advice


def test_a_stiffness_without_damping_cannot_be_held_and_the_limit_says_so() -> None:
    bare = make_spec(mass=0.2)
    advice = said(MasslessImpedance(Coulomb(4.0), 1000.0, 0.0), bare)["stiffness"]
    assert advice.limit == 0.0
    assert "change element.damping" in advice.text


def test_an_encoder_is_judged_by_half_of_the_friction() -> None:
    coarse = make_spec(position_resolution=100e-6, mass=5.0, damping=20.0)
    assert said(model_c(6000.0, force=3.1), coarse)["encoder"].severity is Severity.WARNING
    assert said(model_c(6000.0, force=3.3), coarse)["encoder"].severity is Severity.NOTE
    assert "encoder" not in said(model_c(6000.0, force=6.5), coarse)


def test_a_mass_is_judged_by_its_limit() -> None:
    servo = PositionServo.of(ARM)
    assert servo is not None
    limit = mass_limit(servo)
    assert said(RigidAdmittance(Coulomb(6.0), 0.9 * limit), ARM)["mass"].severity is Severity.WARNING
    assert said(RigidAdmittance(Coulomb(6.0), 1.9 * limit), ARM)["mass"].severity is Severity.NOTE
    assert "mass" not in said(RigidAdmittance(Coulomb(6.0), 2.1 * limit), ARM)


def test_an_arm_that_knows_its_least_mass_is_believed() -> None:
    knows = make_spec(Causality.ADMITTANCE, max_force=50.0, servo_frequency=30.0, least_mass=0.7, handle_mass=0.3)
    found = [said(RigidAdmittance(Coulomb(6.0), mass), knows) for mass in (0.69, 0.71, 1.41)]
    assert found[0]["mass"].severity is Severity.WARNING
    assert "shakes below 0.7 kg in a grip of 1000 N/m" in found[0]["mass"].text
    assert "with 0.3 kg of handle beyond its force sensor; raise it" in found[0]["mass"].text
    assert found[1]["mass"].severity is Severity.NOTE
    assert "mass" not in found[2]


def test_an_arm_that_no_mass_can_help_is_told_apart_and_fits_into_json() -> None:
    slow = make_spec(Causality.ADMITTANCE, max_force=50.0, servo_frequency=5.0)
    advice = said(RigidAdmittance(Coulomb(6.0), 2.0), slow)["mass"]
    assert advice.limit == math.inf
    assert "no element.mass" in advice.text
    assert json.loads(json.dumps(advice.as_dict(), allow_nan=False))["limit"] is None


def test_a_force_beyond_the_device_is_named() -> None:
    assert said(model_c(2000.0, force=11.0), JOYSTICK)["force"].severity is Severity.WARNING
    weak = make_spec(Causality.ADMITTANCE, max_force=5.0)
    assert "measure 5 N" in said(RigidAdmittance(Coulomb(6.0), 2.0), weak)["force"].text


def test_a_steep_fall_is_told_with_the_velocity_that_would_do() -> None:
    law = Stribeck(3.0, 4.0, 0.07)
    advice = said(MasslessImpedance(law, 6000.0, 10.0), make_spec())["fall"]
    assert advice.severity is Severity.NOTE
    assert advice.limit == law.mobility_limit


@pytest.mark.filterwarnings("ignore::haptics.errors.AmbiguousLawWarning")
def test_a_fall_that_leaves_several_forces_is_a_warning() -> None:
    advice = said(MasslessImpedance(Stribeck(3.0, 4.0, 0.05), 6000.0, 10.0), make_spec())["fall"]
    assert advice.severity is Severity.WARNING
    assert "raise law.stribeck_velocity above 0.0625 m/s" in advice.text


def test_what_a_device_does_not_state_is_not_judged() -> None:
    assert advise(model_c(1e6), make_spec()) == []
    assert advise(RigidAdmittance(Coulomb(6.0), 1e-6), make_spec(Causality.ADMITTANCE, max_force=50.0)) == []


def test_no_friction_asks_nothing() -> None:
    assert advise(model_c(1e6, force=0.0), JOYSTICK) == []


def test_warnings_come_first_and_every_text_is_one_line() -> None:
    advice = advise(model_c(1e5, force=3.0), JOYSTICK)
    assert [one.severity for one in advice] == sorted((one.severity for one in advice), reverse=True)
    assert len(advice) == 2
    assert all("\n" not in one.text and one.text.endswith(".") for one in advice)


@pytest.mark.filterwarnings("ignore::haptics.errors.AmbiguousLawWarning")
@pytest.mark.parametrize(("share", "doubted"), [(1.01, True), (0.99, False)])
@pytest.mark.parametrize("force", [4.0, 0.0])
def test_a_closed_form_is_doubted_where_the_law_is_steep(share: float, doubted: bool, force: float) -> None:
    """Condition (48), with a tenth as small; the exact law is solved whatever its slope."""
    limit = 0.1 * (10.0 + 3.0)  # of B + T K
    law = CoulombViscous(force, share * limit)
    closed = said(MasslessImpedance(ClosedForm(law), 3000.0, 10.0), JOYSTICK)
    assert ("approximation" in closed) is doubted
    assert "approximation" not in said(MasslessImpedance(law, 3000.0, 10.0), JOYSTICK)
    if doubted:
        advice = closed["approximation"]
        assert advice.severity is Severity.WARNING and "condition 48" in advice.text
        assert advice.value == pytest.approx(share * advice.limit)
