"""The study of 2-down/1-up and QUEST+ against what is known of both beforehand."""

import importlib.util
import math
from types import ModuleType

import numpy as np
import pytest

from apps.experiment.observers import SimulatedObserver, make_observer
from apps.experiment.procedures import make_procedure
from apps.experiment.trial import TrialView
from tests.processes import ROOT

EXAMPLE = ROOT / "examples" / "threshold_methods.py"


@pytest.fixture(scope="module")
def study() -> ModuleType:
    found = importlib.util.spec_from_file_location("threshold_methods", EXAMPLE)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def person(**table: float) -> SimulatedObserver:
    return make_observer({"spread": 0.0, **table}, seed=np.random.SeedSequence(0))


def proportion(who: SimulatedObserver, study: ModuleType, level: float) -> float:
    values = (study.REFERENCE, study.REFERENCE + level)
    return who.probability(TrialView("discrimination", study.AXIS, study.REFERENCE, level, values, 2))


def test_the_information_of_a_trial_is_that_of_the_observers_own_probability(study: ModuleType) -> None:
    who = person()
    threshold, z75 = who.truth(study.AXIS, study.REFERENCE)["increment_75"], 0.6744897501960817
    for z in (0.3, 0.545, 0.674, 1.3, 2.5):
        level, step = threshold * z / z75, 1e-5
        p = proportion(who, study, level)
        slope = (proportion(person(weber=0.1 * math.exp(step), floor=0.05 * math.exp(step)), study, level) - p) / step
        assert study.information(z, who.settings.lapse) == pytest.approx(slope**2 / (p * (1.0 - p)), rel=1e-3)


def test_an_estimate_from_trials_at_the_best_level_scatters_by_the_bound(study: ModuleType) -> None:
    """The proportion correct at one level, turned round: unbiased in the limit, with the scatter of the bound."""
    lapse, trials = 0.02, 4000
    z, bound = study.best(lapse)
    assert all(study.information(z, lapse) >= study.information(other * z, lapse) for other in (0.5, 0.95, 1.05, 2.0))
    p = lapse + (1.0 - 2.0 * lapse) * study.NORMAL.cdf(z)
    shares = np.random.default_rng(1).binomial(trials, p, 4000) / trials
    logs = [math.log(study.NORMAL.inv_cdf((share - lapse) / (1.0 - 2.0 * lapse))) for share in shares]
    assert np.std(logs) == pytest.approx(bound / math.sqrt(trials), rel=0.05)
    assert study.best(0.0)[1] == pytest.approx(1.282, abs=1e-3)  # by hand: z = 1.575, P = 0.942, I = 0.608


def test_two_down_one_up_settles_where_half_of_the_pairs_are_right(study: ModuleType) -> None:
    """P^2 = 1/2 (Levitt 1971): 70.7 % correct, from small steps and an observer who does not lapse."""
    table = {**study.EQUAL, "steps": [0.5], "minimum": 1e-4, "maximum": 10.0, "start": 0.1}
    procedure, who = make_procedure(table, guess=0.5, seed=np.random.SeedSequence(0)), person(lapse=0.0)
    rng, right = np.random.default_rng(0), []
    for _ in range(8000):
        level = procedure.level()
        right.append(bool(rng.random() < proportion(who, study, level)))
        procedure.take(level, right[-1])
    assert np.mean(right[200:]) == pytest.approx(math.sqrt(0.5), abs=0.01)


def test_staircases_have_no_other_levels_than_quest(study: ModuleType) -> None:
    for table in (study.QUEST, study.EQUAL, study.WEIGHTED, study.KNOWN):
        levels = []
        procedure, rng = make_procedure(table, guess=0.5, seed=np.random.SeedSequence(0)), np.random.default_rng(3)
        for _ in range(80):
            levels.append(procedure.level())
            procedure.take(levels[-1], bool(rng.random() < 0.75))
        off = np.abs(np.log(levels)[:, None] - np.log(study.LEVELS)).min(axis=1)
        assert off.max() < 1e-9
