"""A handle is found from how it answers to pushes: against a plant that is integrated in small steps here."""

import math

import numpy as np

from calibration.autotune.answers import Answers, Plant, Push

FINE = 2e-5


def moved(plant: Plant, command: np.ndarray, period: float) -> np.ndarray:
    """Return where a handle is at each tick, by many small steps."""
    steps, late = round(period / FINE), round(plant.delay / FINE)
    force = np.concatenate((np.zeros(late), np.repeat(command, steps)))
    x = v = 0.0
    places = []
    for k in range(len(command) * steps):
        if k % steps == 0:
            places.append(x)
        push = force[k] - plant.offset
        before = v
        free = v + FINE / plant.mass * (push - plant.damping * v)
        grip = FINE / plant.mass * plant.friction
        v = math.copysign(max(abs(free) - grip, 0.0), free)
        x += 0.5 * FINE * (before + v)
    return np.array(places)


def pushed(plant: Plant, period: float, step: float, seed: int, count: int = 8) -> list[Push]:
    """Return pushes of different strengths, as an encoder sees them."""
    rng = np.random.default_rng(seed)
    history = math.ceil(0.02 / period) + 1
    pushes = []
    for strength in np.geomspace(0.3, 3.0, count):
        ticks = max(round(rng.uniform(0.015, 0.05) / period), 3)
        force = strength * rng.choice((-1.0, 1.0)) * plant.mass / 0.2 + plant.friction
        shape = np.repeat((force, -force, -force, force), ticks)
        command = np.concatenate((np.zeros(history), shape, np.zeros(round(0.05 / period))))
        place = moved(plant, command, period) + rng.uniform(-1.0, 1.0) * step
        pushes.append(Push(command, (np.round(place / step) * step)[history:], history))
    return pushes


def test_the_computed_answer_is_that_of_small_steps() -> None:
    plant = Plant(0.1, 1.5, 0.2, 0.05, 2.3e-3)
    (push,) = pushed(plant, 1e-3, 1e-9, 0, count=1)
    answer = Answers([push], 1e-3).simulate([plant], np.zeros((1, 1)))[0, 0]
    went = push.position - push.position[0]
    assert np.ptp(went) > 1e-4
    np.testing.assert_allclose(answer, went, atol=0.01 * np.ptp(went))
