"""Derivatives of friction models as fits see them, and laws without what tells how far to trust them."""

import numpy as np
import pytest

from calibration.friction import MODELS, FitSettings, Samples, fit_friction
from calibration.friction.fit import fit_law
from calibration.friction.motion import Motion
from calibration.friction.problem import Problem

SCALED = [name for name, model in MODELS.items() if model.scaled]


@pytest.mark.parametrize("physical", [False, True])
@pytest.mark.parametrize("name", SCALED)
def test_derivatives_are_those_that_differences_show(name: str, physical: bool) -> None:
    velocity = np.concatenate((-np.geomspace(1e-3, 2.0, 30), [0.0], np.geomspace(1e-3, 2.0, 30)))
    problem = Problem(MODELS[name], physical, Motion(velocity), np.cos(velocity))
    place = np.random.default_rng(4).uniform(0.5, 2.0, len(problem.names) - MODELS[name].plateau)
    place[-1] = 0.3
    steps = 1e-6 * np.eye(len(place))
    differences = [
        problem.evaluate(velocity, place + step) - problem.evaluate(velocity, place - step) for step in steps
    ]
    value, jacobian = problem.expanded(velocity, place)
    np.testing.assert_allclose(jacobian, np.column_stack(differences) / 2e-6, rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(value, problem.evaluate(velocity, place))


@pytest.mark.parametrize("name", ["coulomb-viscous", "stribeck-asymmetric"])
def test_a_law_alone_is_that_of_the_fit(name: str) -> None:
    rng = np.random.default_rng(5)
    time = 0.01 * np.arange(3000)
    velocity = 0.5 * np.sin(time) ** 3
    friction = np.sign(velocity) * (1.0 + 0.5 * np.exp(-np.abs(velocity) / 0.1)) + 0.2 * velocity
    samples = Samples(time, velocity + 1e-3 * rng.standard_normal(3000), friction + 0.05 * rng.standard_normal(3000))
    fit = fit_friction(samples, name, FitSettings())
    law = fit_law(samples, name)
    assert law.values == fit.values
    np.testing.assert_array_equal(law.error(samples), fit.error(samples))
