"""Calibration of joysticks and wheels: axes, responses to pushes, the release of a force, weights and firmware sums."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from calibration.joystick.forces import Push, Response, agree, identify, time_release
from calibration.joystick.person import GATES, TURNS, EmulatedPerson, Request, in_words
from calibration.joystick.stick import RawStick, counts_of, fit_axes, fit_rim
from devices.emulated.joystick import EmulatedPidJoystick, EmulatedStickSettings
from devices.emulators.pid.profiles import PROFILES
from devices.joystick.parameters import build_parameters, format_parameters
from haptics.errors import ConfigurationError, DeviceOpenError
from haptics.files import parse_toml
from tests.calibration.benches import Idle, Mirrored, attempt, bench, left_alone, moved_here, truth_of

# --- axes -------------------------------------------------------------------------------------------------------------

METRES, NEWTONS = 0.005, 0.03
"""Permitted errors of the matrices, in parts of their largest entry."""
WHEEL = "openffboard-wheel"
TRAVEL = (0.16, 0.12)
RANGE = ((-32768, 32767), (-32768, 32767))
CORNERS = GATES["square"]


def corner_counts(places, matrix, centre):
    half = 0.5 * np.array(TRAVEL)
    points = np.array([(place.x, place.y) for place in places]) * half
    return np.asarray(points @ matrix.T + centre)


@given(
    degrees=st.floats(-180.0, 180.0),
    mirror=st.sampled_from((-1.0, 1.0)),
    ratio=st.floats(0.5, 1.5),
    centre=st.tuples(st.floats(-500.0, 500.0), st.floats(-500.0, 500.0)),
    gate=st.sampled_from(sorted(GATES)),
)
def test_turned_and_mirrored_axes_are_found(degrees, mirror, ratio, centre, gate):
    places = GATES[gate]
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    matrix = np.diag((150e3 * mirror, 150e3 * ratio)) @ np.array(((c, -s), (s, c)))
    axes, misfit = fit_axes(places, np.round(corner_counts(places, matrix, centre)), TRAVEL, RANGE)
    np.testing.assert_allclose(np.array(axes.counts_to_m) @ matrix, np.eye(2), atol=2e-3)
    np.testing.assert_allclose(axes.centre_counts, centre, atol=1.0)
    assert misfit < 2.0 / 75e3
    assert axes.workspace_max_m == (0.08, 0.06)


EXACT = corner_counts(CORNERS, np.diag((200e3, 200e3)), (0.0, 0.0))
WIDE = corner_counts(CORNERS, np.diag((600e3, 200e3)), (0.0, 0.0))
PARALLEL = corner_counts(CORNERS, 0.5 * np.array(((200e3, 190e3), (200e3, 200e3))), (0.0, 0.0))
MISSED = EXACT + np.outer((0.0, 1.0, 0.0, 0.0), (9400.0, 0.0))


def test_a_small_error_of_a_place_is_averaged():
    _, misfit = fit_axes(CORNERS, EXACT + np.outer((0.0, 1.0, 0.0, 0.0), (400.0, 0.0)), TRAVEL, RANGE)
    assert 0.0 < misfit < 2e-3


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        pytest.param(MISSED, r"do not fit together: at the .* corner the handle was .* mm from", id="missed corner"),
        pytest.param(EXACT[[0, 1, 3, 2]], r"do not fit together|not independent", id="exchanged corners"),
        pytest.param(
            np.full((4, 2), 17.0), "the counts at the far left corner are those at the far right corner", id="not moved"
        ),
        pytest.param(np.clip(WIDE, -32768, 32767), r"axis X is at the end of its range, 32767", id="end of the range"),
        pytest.param(PARALLEL, "not independent", id="parallel axes"),
    ],
)
def test_places_that_give_no_axes_are_refused(counts, message):
    with pytest.raises(ConfigurationError, match=message):
        fit_axes(CORNERS, counts, TRAVEL, RANGE)


@pytest.mark.parametrize(
    ("motion", "words"),
    [
        ((1.0, 0.1), "to the right"),
        ((-1.0, -1e-9), "to the left"),
        ((0.1, -1.0), "towards you"),
        ((0.7, 0.7), "to the right and away from you"),
    ],
)
def test_directions_have_names(motion, words):
    assert in_words(motion) == words


# --- responses to pushes ----------------------------------------------------------------------------------------------

TRUTH = np.array(((30.0, 3.0), (-4.0, -25.0)))


def pushed(effect, level, drag=4.0, spring=0.0, rub=0.0, delay=0.0, quantum=0.0):
    """Push a handle whose motion is integrated by another method than the identification uses."""
    time = np.arange(0.0, 0.4, 1e-3)
    levels = level * np.clip(np.minimum((time - 0.02) / 0.06, (0.2 - time) / 0.06), 0.0, 1.0)

    def motion(now, state):
        at = int(np.searchsorted(time, now - delay, side="right")) - 1
        force = TRUTH[:, effect] * (levels[at] if at >= 0 else 0.0)
        against = rub * np.tanh(np.hypot(*state[2:]) / 5e-4) * state[2:] / max(np.hypot(*state[2:]), 1e-12)
        return np.concatenate((state[2:], force - drag * state[2:] - against - spring * state[:2]))

    place = solve_ivp(motion, (0.0, 0.4), np.zeros(4), t_eval=time, max_step=1e-3, method="LSODA").y[:2].T
    return Push(effect, time, levels, np.round(place / quantum) * quantum if quantum else place)


def both(**truth):
    return [pushed(effect, level, **truth) for effect in (0, 1) for level in (0.03, -0.03)]


@settings(max_examples=4, deadline=None)
@given(drag=st.floats(1.0, 10.0), spring=st.floats(0.0, 60.0), delay=st.sampled_from((0.0, 0.003, 0.009, 0.02)))
def test_motors_friction_spring_and_delay_are_found(drag, spring, delay):
    found = identify(both(drag=drag, spring=spring, delay=delay))
    np.testing.assert_allclose(found.acceleration, TRUTH, atol=0.02 * 30.0)
    assert found.drag == pytest.approx(drag, abs=0.4)
    assert found.spring == pytest.approx(spring, abs=4.0)
    assert found.delay == pytest.approx(delay, abs=1.1e-3)
    assert found.misfit < 0.01


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_dry_friction_does_not_rotate_the_forces(share):
    """As a part of the peak of the push."""
    found = identify(both(rub=share * 0.03 * 30.0, delay=0.003))
    ratio = found.acceleration / found.acceleration[0, 0]
    np.testing.assert_allclose(ratio, TRUTH / TRUTH[0, 0], atol=0.05)
    assert found.rub == pytest.approx(share * 0.03 * 30.0, rel=0.3)
    assert found.misfit < 0.1


def test_counts_of_a_tenth_of_a_millimetre_suffice():
    found = identify(both(quantum=1e-4, delay=0.009))
    ratio = found.acceleration / found.acceleration[0, 0]
    np.testing.assert_allclose(ratio, TRUTH / TRUTH[0, 0], atol=0.02)


def test_a_push_that_was_disturbed_is_left_out_unless_it_is_the_only_one_of_its_effect():
    pushes = [*both(), *both()]
    late = pushes[0]
    spoilt = Push(0, late.time, late.level, np.roll(late.displacement, 30, axis=0))
    spoilt.displacement[:30] = 0.0
    found = identify([spoilt, *pushes[1:]])
    np.testing.assert_allclose(found.acceleration, TRUTH, atol=0.02 * 30.0)
    assert len(found.misfits) == 7
    others = [push for push in pushes if push.effect == 1]
    assert len(identify([spoilt, *others]).misfits) == 1 + len(others)


# --- release of a force -----------------------------------------------------------------------------------------------


def response_of(table):
    truth = truth_of(table.stick)
    level = np.array(truth.force.newton_to_level)
    newtons = np.array(((1.0 / level[0, 0], 0.0), (0.0, 0.0))) if truth.axes.rim_radius_m else np.linalg.inv(level)
    mass, damping = truth.handle.moving_mass_kg, truth.handle.damping_ns_per_m
    assert mass is not None and damping is not None
    return Response(newtons / mass, damping / mass, 0.0, 0.0, 0.0, 0.0, ())


def timed(profile, **settings):
    table = bench(profile)
    own = EmulatedStickSettings(emulated=True, **settings)
    known = truth_of(table.stick)
    with moved_here(table), RawStick(own, table.backend, wheel=bool(known.axes.rim_radius_m)) as stick:
        return time_release(stick, known.axes, response_of(table), table.person, 0.3), table


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("duration", [0.2, 0.12])
def test_the_release_time_of_the_stick_is_measured(profile, duration):
    lasted, table = timed(profile, force_duration=duration, keep_alive=0.05)
    assert lasted == pytest.approx(duration, abs=0.012)
    assert left_alone(table.stick)


def test_the_force_is_not_renewed_during_the_measurement():
    _, table = timed("openffboard")
    log = list(table.stick.firmware.log)
    first = next(i for i, (_, kind, fields) in enumerate(log) if kind == "constant" and fields["magnitude"])
    sent = [(kind, fields.get("magnitude")) for _, kind, fields in log[first : first + 3]]
    assert sent[1:] == [("operation", None), ("constant", 0)], "the force, its start, and the end of it"
    apart = log[first + 2][0] - log[first + 1][0]
    assert apart >= 490, "ms"


def test_a_stick_that_goes_on_pushing_is_refused_and_left_without_force(monkeypatch):
    ever = frozenset(range(0x10000))
    monkeypatch.setitem(PROFILES, "endless", dataclasses.replace(PROFILES["openffboard"], endless=ever))
    table = bench("endless")
    known = truth_of(table.stick)
    with moved_here(table), pytest.raises(ConfigurationError, match=r"does not end a force by itself.*not supported"):
        with RawStick(EmulatedStickSettings(emulated=True), table.backend) as stick:
            time_release(stick, known.axes, response_of(table), table.person, 0.3)
    assert left_alone(table.stick)
    assert (np.abs(table.stick.handle) < known.axes.workspace_max_m).all(), "it was ended long before the stop"


def test_the_release_time_is_stored_in_the_file_and_the_data_sheet(tmp_path):
    known = truth_of(bench("openffboard").stick)
    text = format_parameters(dataclasses.replace(known, force=dataclasses.replace(known.force, release_s=0.23)))
    assert build_parameters(parse_toml(text, "f"), "f").force.release_s == 0.23
    path = tmp_path / "stick.toml"
    for line, watchdog in (("release_s = 0.23\n", 0.23), ("", 0.2), ("release_s = 0.05\n", 0.2)):
        path.write_text(text.replace("release_s = 0.23\n", line))
        settings = {"emulated": True, "parameters": str(path)}
        assert EmulatedPidJoystick(settings).spec.watchdog == watchdog
    with pytest.raises(ConfigurationError, match=r"force\.release_s = -1\.0: must be a number of at least 0 s"):
        build_parameters(parse_toml(text.replace("0.23", "-1.0"), "f"), "f")


# --- sums of effects --------------------------------------------------------------------------------------------------


def answer(first, second):
    return Response(np.array((first, second)).T, 0.0, 0.0, 0.0, 0.0, 0.0, ())


def test_similar_responses_of_each_effect_agree():
    together, similar = answer((10.0, 0.0), (0.0, 20.0)), ((10.0, 0.0), (12.0, 1.0))
    for alone in (*similar, (20.0, 0.0), (5.0, 0.0), (0.0, 10.0), (-10.0, 0.0)):
        assert agree(answer(alone, (0.0, 20.0)), together) == (alone in similar), alone
        assert agree(answer((10.0, 0.0), (2.0 * alone[1], 2.0 * alone[0])), together) == (alone in similar), alone


# --- wheels -----------------------------------------------------------------------------------------------------------


class Askew(EmulatedPerson):
    """Does not centre the wheel."""

    def bring(self, place, look):
        super().bring(place._replace(x=place.x or 0.4), look)


@pytest.mark.parametrize(
    ("kind", "words"), [(Mirrored, "but it did not"), (Askew, "do not fit together"), (Idle, "are those at")]
)
def test_wrong_turns_of_a_wheel_are_refused(kind, words, tmp_path):
    table = bench(WHEEL, kind)
    with pytest.raises(ConfigurationError, match=words):
        attempt(table, tmp_path / "run")
    assert left_alone(table.stick)


def test_a_wheel_calibrated_as_a_stick_is_refused(tmp_path):
    table = bench(WHEEL)
    with pytest.raises(DeviceOpenError, match=r"is a wheel.*haptics calibrate joystick --rim-radius M"):
        attempt(table, tmp_path / "run", rim_radius=None, travel_x=0.2, travel_y=0.16)
    assert left_alone(table.stick)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "the size is needed, of a stick or of a wheel"),
        ({"travel_x": 0.1}, "--travel-x M and --travel-y M, from stop to stop, or --rim-radius M"),
        ({"travel_x": 0.1, "travel_y": 0.1, "rim_radius": 0.15}, "of a stick or of a wheel"),
        ({"rim_radius": 0.0}, "--rim-radius = 0: must be at least 0.02 and at most 1 m"),
        ({"rim_radius": 0.15, "weight": 0.2, "stated_max_force": None}, "--weight is for sticks.*--stated-max-force N"),
    ],
)
def test_a_request_for_a_wheel_is_validated(given, words):
    with pytest.raises(ConfigurationError, match=words):
        Request(**{"stated_max_force": 20.0, **given})


def test_wheel_counts_are_linear_in_the_angle_with_any_sign_and_centre():
    radius, turn, centre, per_turn = 0.15, math.pi / 2.0, 137.0, -5000.0
    counts = np.array([centre + per_turn * place.x for place in TURNS])
    axes, misfit = fit_rim(TURNS, counts, radius, turn, ((-32767, 32767),))
    assert misfit == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(counts_of(axes, np.array((0.01, 0.0))), (centre - 5000.0 * 0.01 / (radius * turn), 0.0))
    assert axes.workspace_max_m[0] == pytest.approx((32767 - 137) / 5000.0 * radius * turn)
    assert axes.workspace_min_m[0] == -axes.workspace_max_m[0]
    with pytest.raises(ConfigurationError, match="axis X is at the end of its range"):
        fit_rim(TURNS, np.array((32767, -32767, 0.0)), 0.15, 1.0, ((-32767, 32767),))
