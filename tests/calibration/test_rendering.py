"""From identified friction to a session: conversion, laws, elements, files, and comparison of hysteresis loops."""

import tomllib

import numpy as np
import pytest
from numpy.typing import NDArray

from apps.settings.config import complete
from calibration.data.joint_recording import JointRecording, Source
from calibration.hysteresis import BINS, Motion, compare_loops, mean_loop
from calibration.parameters import Found, JointParameters
from calibration.rendering import (
    PERIOD,
    Conversion,
    SlidingFriction,
    felt_friction,
    format_hand,
    format_session,
    joint_position,
    read_provenance,
)
from devices.common.settings import Workspace
from devices.virtual.hands.recorded import RecordedSettings
from haptics.design.bounds import contact_is_stable
from haptics.design.loops import Coupling
from haptics.device import Causality
from haptics.elements.models import simulate
from haptics.elements.tables import make_element, make_law
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

SLIDE = Conversion(rotary=False)
VELOCITY = 0.1 * np.sin(np.linspace(0.0, 40.0, 4000))
"""A motion of a slide [m/s]."""
SOURCE = Source("data/joint.csv", "ab" * 32)

COULOMB = {"coulomb": 3.0, "viscosity": 0.0}
VISCOUS = {"coulomb": 3.0, "viscosity": 5.0}
GENTLE = {"coulomb": 3.0, "static_forward": 3.4, "static_backward": 3.4, "stribeck_velocity": 0.1, "viscosity": 4.0}
STEEP = {**GENTLE, "static_forward": 7.0, "static_backward": 7.0, "stribeck_velocity": 1.75e-3}
SIDED = {"coulomb_forward": 3.0, "coulomb_backward": 2.0, "viscosity_forward": 5.0, "viscosity_backward": 5.0}


def slide(values, model="coulomb-viscous"):
    return JointParameters("slide", False, Found(model, values))


def felt(values, model="coulomb-viscous", conversion=SLIDE):
    return felt_friction(slide(values, model), conversion, VELOCITY / conversion.lever_arm, [SOURCE])


def rendered(found, velocity):
    plane = np.column_stack((velocity, np.zeros_like(velocity)))
    return make_law(found.law)(plane)[:, 0]


def element_of(found, causality=Causality.IMPEDANCE):
    form = getattr(found, causality)
    return make_element(form["model"], found.law, form["element"], PERIOD, causality)


# --- units ------------------------------------------------------------------------------------------------------------


def test_torques_become_forces_at_the_lever_arm():
    conversion = Conversion.of(True, 0.1, 0.5)
    joint = JointParameters("knee", True, Found("stribeck", {**GENTLE, "stribeck_velocity": 0.8}))
    found = felt_friction(joint, conversion, VELOCITY / 0.1)
    levels = {"kinetic_force": 15.0, "static_force": 17.0}
    assert found.law == {"name": "stribeck", **levels, "stribeck_velocity": 0.08, "viscosity": 200.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((True, None), r"the joint turns.*give --lever-arm M"),
        ((False, 0.1), r"--lever-arm = 0\.1: the joint slides"),
        ((True, 0.0), r"--lever-arm = 0\.0: must be a number greater than 0"),
        ((True, 0.1, float("nan")), r"--scale = nan"),
    ],
)
def test_impossible_conversions_are_refused(arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        Conversion.of(*arguments)


# --- laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "model", "name"),
    [
        (COULOMB, "coulomb-viscous", "coulomb"),
        (VISCOUS, "coulomb-viscous-offset", "coulomb-viscous"),
        ({"viscosity": 5.0}, "viscous", "coulomb-viscous"),
        (GENTLE, "stribeck", "stribeck"),
        (GENTLE, "stribeck-gaussian", "gaussian-stribeck"),
        (SIDED, "coulomb-viscous-asymmetric", "asymmetric"),
    ],
)
def test_friction_of_a_known_law_is_rendered_exactly(values, model, name):
    found = felt(values, model)
    assert found.law["name"] == name
    identified = SlidingFriction.of(model, values, SLIDE)
    np.testing.assert_allclose(rendered(found, VELOCITY[1:]), identified.force(VELOCITY[1:]), rtol=1e-5, atol=1e-9)
    assert found.approximated == ()
    assert found.error < 1e-4


@pytest.mark.parametrize(("fall", "name"), [(0.1, "asymmetric"), (2.0, "stribeck")])
def test_asymmetric_levels_with_a_fall_are_rendered_by_the_closer_law(fall, name):
    values = {
        **SIDED,
        "coulomb_backward": 2.8 if fall > 1.0 else 2.0,
        "static_forward": 3.0 + fall,
        "static_backward": (2.8 if fall > 1.0 else 2.0) + fall,
        "stribeck_velocity": 0.2,
    }
    found = felt(values, "stribeck-asymmetric")
    assert found.law["name"] == name
    truth = SlidingFriction.of("stribeck-asymmetric", values, SLIDE).force(VELOCITY[1:])
    error = float(np.sqrt(np.average((rendered(found, VELOCITY[1:]) - truth) ** 2, weights=np.abs(VELOCITY[1:]))))
    assert found.error == pytest.approx(error, rel=0.02)
    assert error < 0.2
    assert f"{found.error:.3g} N rms" in found.approximated[-1]
    assert found.approximated[-1].count("N rms") == 2


@pytest.mark.parametrize(
    "values",
    [
        {**SIDED, "coulomb_backward": 0.0},
        {"coulomb": 0.0, "viscosity": 0.0, "presliding": 0.0, "presliding_distance": 1e-3},
        {"coulomb_forward": 0.0, "coulomb_backward": 0.0, "viscosity": 0.0},
    ],
)
def test_levels_of_zero_are_rendered(values):
    found = felt(values, "coulomb-viscous-asymmetric")
    for causality in Causality:
        element_of(found, causality).step((0.1, 0.0))


@pytest.mark.parametrize("model", ["stribeck", "stribeck-gaussian"])
@pytest.mark.parametrize("presliding", [{}, {"presliding": 1.5, "presliding_distance": 1e-3}])
def test_a_steep_fall_is_widened_until_every_element_solves_it(model, presliding):
    found = felt({**STEEP, **presliding}, model)
    law = make_law(found.law)
    for causality in Causality:
        assert 1.2 * element_of(found, causality).mobility < law.mobility_limit
    assert max(element_of(found, causality).mobility for causality in Causality) > 0.79 * law.mobility_limit
    assert found.law["stribeck_velocity"] > 1.75e-3
    assert 3.0 <= found.law["kinetic_force"] <= found.law["static_force"] <= 7.0
    assert f"from 1.75 to {1e3 * found.law['stribeck_velocity']:.3g} mm/s" in found.approximated[0]
    identified = SlidingFriction.of(model, STEEP, SLIDE).force(VELOCITY[1:])
    widest = {**found.law, "static_force": 7.0, "kinetic_force": 3.0}
    widest["stribeck_velocity"] *= 4.0 / (found.law["static_force"] - found.law["kinetic_force"])
    plane = np.column_stack((VELOCITY[1:], np.zeros(len(VELOCITY) - 1)))
    squares = (make_law(widest)(plane)[:, 0] - identified) ** 2
    only_widened = float(np.sqrt(np.average(squares, weights=np.abs(VELOCITY[1:]))))
    assert found.error < only_widened


def test_a_level_beyond_the_device_proposes_a_scale():
    joint = JointParameters("knee", True, Found("coulomb-viscous", {"coulomb": 30.0, "viscosity": 0.0}))
    (warning,) = felt_friction(joint, Conversion(True, 0.1), VELOCITY).warnings
    scale = float(warning.rpartition("--scale ")[2].rstrip("."))
    proposed = felt_friction(joint, Conversion(True, 0.1, scale), VELOCITY)
    assert proposed.law["force"] == pytest.approx(4.0, rel=0.1)
    assert proposed.warnings == ()


# --- elements ---------------------------------------------------------------------------------------------------------


def stops(way, level, part, distance):
    """Return dry friction with presliding by the identified law: six stops and a share that reverses at once."""
    limits = distance * np.linspace(0.2, 1.8, 6)
    state, result = np.zeros(6), np.empty(len(way))
    for k, step in enumerate(np.diff(way, prepend=way[0])):
        state = np.clip(state + step, -limits, limits)
        result[k] = (level - part) * np.sign(step) + part * state.mean() / distance
    return result


@pytest.mark.parametrize("part", [0.5, 1.5, 3.0])
def test_presliding_is_rendered_over_the_identified_distance(part):
    found = felt({**COULOMB, "presliding": part, "presliding_distance": 2e-3}, "coulomb-viscous-presliding")
    assert found.impedance["model"] == "iwan"
    time = np.arange(0.0, 4.0, PERIOD)
    way = 0.02 * np.sin(2.0 * time)
    run = simulate(element_of(found), np.column_stack((np.gradient(way, PERIOD), np.zeros(len(way)))))
    error = run.output[:, 0] - stops(way, 3.0, part, 2e-3)
    since_reversal = np.abs(way + 0.02 * np.sign(np.gradient(way)))
    turned = (time > 1.0) & (since_reversal > 2.0 * (3.0 - part) / 6000.0 + 1e-4)
    assert np.abs(error[turned]).max() < 0.2, "by the damping of the springs, once the stiff share has turned over"
    assert turned.mean() > 0.5
    assert np.abs(error[turned & (since_reversal > 7.4e-3)]).max() < 1e-3


def test_an_admittance_dissipates_as_much_at_a_reversal_as_the_identified_law():
    found = felt({**COULOMB, "presliding": 1.5, "presliding_distance": 2e-3}, "coulomb-viscous-presliding")
    form = found.admittance["element"]
    assert found.admittance["model"] == "D"
    assert contact_is_stable(Coupling(form["stiffness"], form["damping"], PERIOD), form["mass"])
    assert 2.0 * 3.0**2 / form["stiffness"] == pytest.approx(2.0 * 1.5 * 2e-3, rel=1e-5)


def test_presliding_that_is_too_stiff_is_softened_and_stated():
    found = felt({**COULOMB, "presliding": 1.5, "presliding_distance": 1e-5}, "coulomb-viscous-presliding")
    assert found.impedance["element"]["stiffness"] == 4000.0
    assert "over 0.01 mm is stiffer than an impedance device can render; there it has 0.375 mm" in found.approximated[0]


# --- files ------------------------------------------------------------------------------------------------------------

WHOLE = {
    **STEEP,
    "static_backward": 6.0,
    "offset": -0.2,
    "harmonic_1_cos": 0.3,
    "harmonic_1_sin": -0.4,
    "inertia": 0.05,
    "presliding": 1.0,
    "presliding_distance": 0.01,
}


@pytest.mark.parametrize("device", ["virtual-joystick", "virtual-arm"])
def test_the_file_configures_a_session_for_every_device(device):
    joint = JointParameters('a "knee"\n', True, Found("stribeck-offset-presliding-harmonics", WHOLE))
    found = felt_friction(joint, Conversion(True, 0.5), VELOCITY, [SOURCE])
    text = format_session(found, joint)
    tables = tomllib.loads(text)
    config = complete({**tables, "device": {"name": device}})
    assert config.session.model == {"virtual-joystick": "iwan", "virtual-arm": "D"}[device]
    assert config.law["static_force"] == found.law["static_force"]
    for words in (
        "the offset of -0.2 N m",
        "harmonic 1 of the position, amplitude 0.5 N m",
        "the inertia of 0.05 kg m^2",
    ):
        assert f"- {words}" in text.replace("\n#   ", " ")
    assert f"# SHA-256 of 'joint.csv': {SOURCE.sha256}" in text


def test_the_file_keeps_the_provenance_for_a_comparison():
    joint = JointParameters("knee", True, Found("stribeck-offset", WHOLE))
    found = felt_friction(joint, Conversion(True, 0.5, 0.3), VELOCITY, [SOURCE])
    name, conversion, left_out = read_provenance(tomllib.loads(format_session(found, joint)), "felt.toml")
    assert (name, conversion) == ("knee", Conversion(True, 0.5, 0.3))
    assert left_out == {key: WHOLE[key] for key in ("offset", "harmonic_1_cos", "harmonic_1_sin", "inertia")}
    with pytest.raises(ConfigurationError, match=r"felt\.toml: has no table \[provenance\]"):
        read_provenance({"law": {"name": "coulomb"}}, "felt.toml")


@pytest.mark.parametrize("measured", [True, False])
def test_the_recorded_motion_becomes_a_hand(tmp_path, measured):
    time = np.arange(5.0, 15.0, 0.01)
    angle = 0.8 + 0.5 * np.sin(1.3 * (time - 5.0))
    velocity = 0.65 * np.cos(1.3 * (time - 5.0))
    recording = JointRecording(
        "knee", True, time, velocity, -np.sign(velocity), SOURCE, position=angle if measured else None
    )
    np.testing.assert_allclose(np.ptp(joint_position(recording)), 1.0, atol=5e-3)
    file = tmp_path / "hand.csv"
    file.write_text(format_hand(recording, Conversion(True, 0.1)))
    hand = RecordedSettings(file=str(file)).build(1, Workspace((-0.1, -0.08), (0.1, 0.08)))
    assert hand.duration == pytest.approx(9.99)
    assert hand.start[0] == pytest.approx(0.0, abs=1e-3)
    assert hand.start[1] == 0.0


def test_a_joint_that_does_not_move_is_refused():
    with pytest.raises(ConfigurationError, match="slide: does not move"):
        felt_friction(slide(COULOMB), SLIDE, np.zeros(100))


# --- hysteresis loops -------------------------------------------------------------------------------------------------

TIME = np.arange(0.0, 20.0, 0.005)


def swung(level=2.0, viscosity=0.0, middle=0.0, amplitude=0.5):
    velocity = amplitude * np.cos(TIME)
    return Motion(middle + amplitude * np.sin(TIME), velocity, level * np.sign(velocity) + viscosity * velocity)


def test_the_loop_of_dry_friction_is_a_rectangle():
    found = compare_loops(swung(2.0), swung(2.2))
    assert found.level == pytest.approx(2.0)
    assert found.difference == pytest.approx(0.1)
    assert found.area_measured == pytest.approx(2.0 * 2.0 * 1.0, rel=1e-3)
    assert found.area_rendered == pytest.approx(1.1 * found.area_measured)


def test_branches_are_averaged_over_distance():
    """A slow and a fast pass over a bin have equal weight."""
    steps = np.concatenate([np.full(100, 0.01), np.full(1000, -0.001), np.full(1000, 0.001), np.full(100, -0.01)])
    fast = np.abs(steps) > 0.005
    motion = Motion(np.cumsum(steps), steps, np.sign(steps) * np.where(fast, 3.0, 1.0))
    loop = mean_loop(motion, np.linspace(0.1, 0.9, BINS + 1))
    np.testing.assert_allclose(loop.forward, 2.0, atol=0.25)
    assert loop.forward.mean() == pytest.approx(2.0, abs=0.05)
    assert loop.backward.mean() == pytest.approx(-2.0, abs=0.05)


def test_only_the_shared_range_is_compared():
    found = compare_loops(swung(2.0, amplitude=0.5), swung(2.0, amplitude=0.3, middle=0.1))
    assert found.measured.position[0] > -0.2
    assert found.measured.position[-1] < 0.4
    assert found.difference == pytest.approx(0.0, abs=1e-12)


def test_motions_that_cannot_be_compared_are_refused():
    with pytest.raises(ConfigurationError, match="do not overlap"):
        compare_loops(swung(), swung(middle=5.0))
    with pytest.raises(ConfigurationError, match="encloses no work"):
        compare_loops(swung(-2.0), swung())
    few = Motion(*(column[:3] for column in (swung().position, swung().velocity, swung().friction)))
    with pytest.raises(ConfigurationError, match="share 0 of 60 positions"):
        compare_loops(swung(), few)
