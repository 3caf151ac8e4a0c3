"""Tuning of devices: plants from pushes, rings, missing samples, and the search for the stability boundary."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration.autotune import Autotune
from calibration.autotune.boundary import find_boundary, ring_of
from calibration.autotune.plant import Plant, Push, PushSimulator, fit_plant, whole
from calibration.autotune.pushing import Pusher, cut, span, step_of
from calibration.motions.procedure import known_rows
from devices import create_device
from haptics.design import Handle
from haptics.errors import ConfigurationError, DeviceFault
from haptics.records import NEUTRAL, Status

# --- plants from pushes -----------------------------------------------------------------------------------------------

FINE = 2e-5
PERIOD = 1e-3


def moved(mass, damping, friction, force, period, ticks, start=(0.0, 0.0), fine=FINE):
    """Return the position of a mass at each tick, integrated in small steps; `force` depends on step and position."""
    steps = round(period / fine)
    x, v = start
    places = []
    for k in range(ticks * steps):
        if k % steps == 0:
            places.append(x)
        before = v
        free = v + fine / mass * (force(k, x) - damping * v)
        v = math.copysign(max(abs(free) - fine / mass * friction, 0.0), free)
        x += 0.5 * fine * (before + v)
    return np.array(places)


def pushed(plant, period, step, seed, count=8):
    """Return pushes of different strengths, with positions of an encoder."""
    rng = np.random.default_rng(seed)
    history = math.ceil(0.02 / period) + 1
    pushes = []
    for strength in np.geomspace(0.3, 3.0, count):
        ticks = max(round(rng.uniform(0.015, 0.05) / period), 3)
        force = strength * rng.choice((-1.0, 1.0)) * plant.mass / 0.2 + plant.friction
        shape = np.repeat((force, -force, -force, force), ticks)
        command = np.concatenate((np.zeros(history), shape, np.zeros(round(0.05 / period))))
        steps, late = round(period / FINE), round(plant.delay / FINE)
        late_force = np.concatenate((np.zeros(late), np.repeat(command, steps))) - plant.offset
        numbers = plant.mass, plant.damping, plant.friction
        place = moved(*numbers, lambda k, _, force=late_force: force[k], period, len(command))
        place += rng.uniform(-1.0, 1.0) * step
        pushes.append(Push(command, (np.round(place / step) * step)[history:], history))
    return pushes


def test_the_simulated_response_agrees_with_small_steps():
    plant = Plant(0.1, 1.5, 0.2, 0.05, 2.3e-3)
    (push,) = pushed(plant, 1e-3, 1e-9, 0, count=1)
    answer = PushSimulator([push], 1e-3).simulate([plant], np.zeros((1, 1)))[0, 0]
    went = push.position - push.position[0]
    assert np.ptp(went) > 1e-4
    np.testing.assert_allclose(answer, went, atol=0.01 * np.ptp(went))


# --- rings ------------------------------------------------------------------------------------------------------------


def swing(rate, frequency, period, amplitude, step, seconds):
    time = period * np.arange(round(seconds / period))
    swung: np.ndarray = np.round(amplitude * np.exp(rate * time) * np.cos(frequency * time) / step) * step
    return swung


@pytest.mark.parametrize("rate", [-3.0, -0.3, 0.3, 2.0])
@pytest.mark.parametrize("frequency", [60.0, 400.0, 2900.0])
def test_the_rate_of_a_swing_is_found_with_its_sign(rate, frequency):
    ring = ring_of(swing(rate, frequency, 1e-3, 1e-3, 1e-5, 1.0), 1e-3, 1.1 * frequency, 0.0, 1e-5)
    assert ring.rate == pytest.approx(rate, abs=0.1)
    assert ring.frequency == pytest.approx(frequency, rel=0.03)


def test_damping_by_dry_friction_is_not_counted_as_stability():
    mass, stiffness, friction, negative = 0.2, 5000.0, 0.05, -0.3  # a spring with negative damping
    places = moved(mass, negative, friction, lambda k, x: -stiffness * x, 1e-3, 600, (2e-3, 0.0), 5e-6)
    frequency = math.sqrt(stiffness / mass)
    seen = np.round(places / 1e-6) * 1e-6
    assert ring_of(seen, 1e-3, frequency, 4.0 * friction / mass, 1e-6).rate == pytest.approx(0.75, abs=0.15)
    assert ring_of(seen, 1e-3, frequency, 0.0, 1e-6).rate < 0.5  # without known friction


def test_too_few_counts_give_no_rate():
    assert math.isnan(ring_of(swing(0.0, 300.0, 1e-3, 1e-5, 1e-5, 1.0), 1e-3, 300.0, 0.0, 1e-5).rate)
    assert math.isnan(ring_of(np.zeros(0), 1e-3, 300.0, 0.0, 1e-5).rate)


# --- missing samples --------------------------------------------------------------------------------------------------


def pusher():
    return Pusher(create_device("virtual-joystick", {}).spec, Autotune(axes="x", pushes=16), PERIOD)


def answered(motion, spoil):
    """Return the rows of a motion of a handle of 0.2 kg without friction or delay."""
    length = len(motion.table)
    rows = np.repeat(NEUTRAL, length + 3)
    rows["tick"] = np.arange(length + 3)
    force = np.append(motion.table[:, 4], (0.0, 0.0, 0.0))
    rows["command"][:, 0] = force
    rows["position"][1:, 0] = np.cumsum(np.cumsum(force[:-1]) * PERIOD / 0.2) * PERIOD
    rows["position"] = 1e-5 * np.round(rows["position"] / 1e-5)
    rows["sticking"][length - 1 :] = 1
    return spoil(rows)


def ending_in_nothing(rows):
    """Replace the last positions by NaN, at the end of the motion."""
    rows["position"][-2:], rows["status"][-2:] = math.nan, Status.NOT_FINITE
    return rows


def test_ticks_without_a_sample_have_no_position():
    motion = pusher().move(np.zeros((200, 6)))
    rows = answered(motion, ending_in_nothing)
    (push,) = cut(rows, [0], 200, 0, PERIOD)
    assert np.isfinite(push.position).all() and len(push.position) == 200
    rows["status"][50:60], rows["position"][50:60] = Status.IMPLAUSIBLE, 9.0
    (push,) = cut(rows, [0], 200, 0, PERIOD)
    assert np.flatnonzero(np.isnan(push.position)).tolist() == list(range(50, 60))
    assert span(rows, 0) == 0.0
    assert step_of([rows], 0) == (0.0, math.inf)


def test_pushes_and_rows_without_samples_are_refused():
    seen, unseen = (Push(np.zeros(40), np.full(40, value), 0) for value in (0.0, math.nan))
    assert whole([seen, unseen]) == [seen]
    with pytest.raises(ConfigurationError, match="1 of 2 pushes were recorded whole, 8 are needed"):
        whole([seen, unseen], 8)
    with pytest.raises(ConfigurationError, match="0 of 1 pushes"):
        fit_plant([unseen], PERIOD, 0.2, 1e-5)
    rows = np.repeat(NEUTRAL, 10)
    rows["status"] = Status.NOT_FINITE
    with pytest.raises(DeviceFault, match="none of 10 samples could be used"):
        known_rows(rows)


def test_one_push_alone_can_be_fitted():
    force = np.repeat((0.0, 1.0, -1.0, 0.0), 30)
    position = np.append(0.0, np.cumsum(np.cumsum(force[:-1]) * PERIOD / 0.2) * PERIOD)
    fit = fit_plant([Push(force, position, 0)], PERIOD, 0.3, 1e-6, (0.0,))
    assert fit.plant.mass == pytest.approx(0.2, rel=0.1)


@pytest.mark.parametrize(
    ("plant", "resolution", "damping", "words"),
    [
        (Plant(0.05, 0.0, 0.0, 0.0, 0.02), 0.0, 50.0, "no stiffness should hold this axis at 50 N s/m"),
        (Plant(0.2, 1.0, 0.0, 0.0, 5e-4), 5e-3, 3.0, "counts of the encoder: too few"),
        (Plant(0.2, 1.0, 50.0, 0.0, 5e-4), 1e-6, 3.0, "too weak against 50 N of dry"),
    ],
    ids=["unstable at any stiffness", "coarse encoder", "dry friction"],
)
def test_contacts_that_would_not_be_measurable_are_not_tried(plant, resolution, damping, words):
    handle, rows = Handle(plant.mass, plant.damping, plant.delay, resolution), np.repeat(NEUTRAL, 10)
    search = find_boundary(pusher(), plant, handle, "x", damping, rows)
    motion = next(search)
    assert motion.label == "centre"
    with pytest.raises(StopIteration) as ended:
        search.send(rows)
    assert ended.value.value.stiffness is None
    assert words in ended.value.value.doubt
