"""Staircases, QUEST+, fixed procedures, orders of trials and interleaved tracks."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise, product
from statistics import NormalDist, geometric_mean
from typing import Any

import numpy as np
import pytest

from apps.experiment.procedures import methods
from apps.experiment.procedures.methods import (
    Staircase,
    Tracks,
    catch_positions,
    child,
    longest_repeat,
    make_procedure,
    permuted_blocks,
    trial_seed,
    williams,
    williams_order,
)
from apps.experiment.procedures.quest import QuestPlus
from apps.experiment.procedures.settings import BALANCED, QuestSettings, StaircaseSettings, trial_counts
from haptics.errors import ConfigurationError


def run(procedure, answers=lambda level: level > 0.3):
    levels = []
    while not procedure.finished:
        levels.append(procedure.level())
        procedure.add_outcome(levels[-1], answers(levels[-1]))
    return levels


PLAIN = StaircaseSettings(start=1.0, minimum=0.01, maximum=10.0)


def answered(settings, answers):
    staircase = Staircase(settings)
    levels = []
    for answer in answers:
        levels.append(staircase.level())
        staircase.add_outcome(levels[-1], answer)
    return levels, staircase


def independent(settings, answers):
    """Return levels, reversals (trial, level) and clamped trials, from all answers at once: a text cut into moves.

    As PsychoPy's StairHandler: until the first reversal every answer is a move; later a move is n right answers, or a
    wrong one with the right ones before it; the step depends on the number of reversals, including this move.
    """
    text = "".join("-+"[answer] for answer in answers)
    turn = re.match(r"\++-|-+\+", text) if len(set(text)) > 1 else None
    start = (len(text) if turn is None else turn.end()) if settings.initial_rule else 0
    moves = [(place, text[place]) for place in range(start)]
    for found in re.finditer(rf"\+{{{settings.down}}}|\+{{0,{settings.down - 1}}}-", text[start:]):
        moves.append((start + found.end() - 1, found[0][-1]))
    turned = [place for (_, before), (place, sign) in pairwise(moves) if sign != before]
    unit = {"linear": 0.0, "log": 10.0, "dB": 10.0**0.05}[settings.scale]
    now, levels, clamped = settings.start, [], []
    for place in range(len(text)):
        levels.append(now)
        for sign in (sign for end, sign in moves if end == place):
            size = settings.steps[min(sum(each <= place for each in turned), len(settings.steps) - 1)]
            size *= 1.0 if sign == "-" else -(settings.ratio or BALANCED[settings.down])
            wanted = now * unit**size if unit else now + size
            now = min(max(wanted, settings.minimum), settings.maximum)
            clamped += [place + 1] * (abs(wanted - now) > 1e-9)
    return levels, [(place + 1, levels[place]) for place in turned], clamped


def test_random_staircases_agree_with_an_independent_implementation():
    rng = np.random.default_rng(1998)
    clamped = reversed_at_an_end = 0
    for _ in range(300):
        scale = str(rng.choice(["linear", "log", "dB"]))
        size = {"linear": 0.3, "log": 0.2, "dB": 4.0}[scale]
        low, start, high = map(float, np.sort(rng.uniform(0.05, 6.0, 3)) * (0.3, 1.0, 2.0))
        down, steps = int(rng.integers(1, 5)), tuple(rng.uniform(0.2, 1.0, rng.integers(1, 5)) * size)
        ratio, rule = float(rng.choice([0.0, 1.0, rng.uniform(0.2, 3.0)])), bool(rng.integers(2))
        rules = {"down": down, "scale": scale, "steps": steps, "ratio": ratio, "initial_rule": rule}
        settings = StaircaseSettings(start, low, high, **rules, reversals=200, dropped=2)
        answers = [bool(each) for each in rng.random(80) < rng.uniform(0.3, 0.95)]
        levels, staircase = answered(settings, answers)
        expected, reversals, beyond = independent(settings, answers)
        assert levels == pytest.approx(expected, rel=1e-9)
        turns = [(trial, "down" if answers[trial - 1] else "up") for trial, _ in reversals]
        assert [(each["trial"], each["direction"]) for each in staircase.reversals] == turns
        assert [each["level"] for each in staircase.reversals] == pytest.approx([level for _, level in reversals])
        report, used = staircase.report(), [level for _, level in reversals[2:]]
        assert report["clamped"] == beyond
        assert report["estimate"] == (pytest.approx(geometric_mean(used)) if used else None)
        clamped += len(beyond)
        reversed_at_an_end += sum(math.isclose(level, settings.maximum) for _, level in reversals)
    assert clamped > 100 and reversed_at_an_end > 20


def test_staircase_ends_by_reversals_or_trials():
    answers = [True, False] * 10
    settings = replace(PLAIN, down=1, ratio=1.0, reversals=5, dropped=2)
    assert not answered(settings, answers[:5])[1].finished
    assert answered(settings, answers[:6])[1].finished
    assert not answered(replace(settings, trials=8), answers[:7])[1].finished
    assert answered(replace(settings, trials=8), answers[:8])[1].finished
    assert answered(replace(settings, most_trials=4), [True] * 4)[1].finished


@pytest.mark.parametrize("initial_rule", [True, False])
@pytest.mark.parametrize("down", [1, 2, 3, 4])
@pytest.mark.parametrize("reversals", [2, 3, 4])
def test_fewest_trials_of_a_staircase_are_those_of_the_shortest_run(down, reversals, initial_rule):
    settings = replace(PLAIN, down=down, reversals=reversals, initial_rule=initial_rule, dropped=0)
    lengths = []
    for answers in product((True, False), repeat=trial_counts(settings)[0]):
        staircase = Staircase(settings)
        for answer in answers:
            if not staircase.finished:
                staircase.add_outcome(staircase.level(), answer)
        lengths += [staircase.trials] * staircase.finished
    assert lengths and min(lengths) == trial_counts(settings)[0]
    assert trial_counts(replace(settings, most_trials=2))[0] == 2


def test_reversal_has_the_level_that_was_shown():
    staircase = Staircase(replace(PLAIN, down=1))
    staircase.add_outcome(1.0, True)
    staircase.add_outcome(0.777, False)
    assert staircase.reversals == [{"trial": 2, "level": 0.777, "direction": "up"}]


@pytest.mark.parametrize(
    ("down", "ratio", "percent"), [(1, 0.0, 77.85), (2, 0.0, 80.35), (3, 0.0, 83.15), (4, 0.0, 85.84), (2, 1.0, 70.71)]
)
def test_staircase_has_the_published_target(down, ratio, percent):
    """Garcia-Perez 1998, table of asymptotic performance with balanced ratios; Levitt 1971 with equal steps."""
    report = Staircase(replace(PLAIN, down=down, ratio=ratio)).report()
    assert report["target_percent"] == pytest.approx(percent, abs=0.01)


def proportion(level):
    """Return the proportion correct of an observer in two intervals, w75 = 0.18, lapse 1 %."""
    return 0.01 + 0.98 * 0.5 * math.erfc(-0.6745 * level / 0.18 / math.sqrt(2.0))


@pytest.mark.parametrize(
    ("down", "ratio", "reversals", "percent", "spread", "trials"),
    [
        (2, 1.0, 10, 73.4, 40, 39),
        (3, 1.0, 10, 79.5, 32, 50),
        (2, 0.5488, 10, 82.1, 28, 47),
        (3, 0.7393, 10, 83.1, 27, 54),
        (3, 0.7393, 14, 83.0, 23, 74),
    ],
)
def test_staircase_rules_converge_to_known_percentages(down, ratio, reversals, percent, spread, trials):
    """Percent correct at the mean estimate, spread [%] and trials in 20 000 runs of another program, from 5.6 w75."""
    numbers = {"ratio": ratio, "steps": (2.0,), "reversals": reversals, "dropped": 4}
    settings = StaircaseSettings(start=1.0, minimum=0.01, maximum=1.0, down=down, **numbers)
    rng, estimates, used = np.random.default_rng(7), [], []
    for _ in range(600):
        staircase = Staircase(settings)
        run(staircase, lambda level: bool(rng.random() < proportion(level)))
        estimates.append(staircase.report()["estimate"])
        used.append(staircase.trials)
    assert 100.0 * proportion(float(np.mean(estimates))) == pytest.approx(percent, abs=1.0)
    assert 100.0 * np.std(estimates) / np.mean(estimates) == pytest.approx(spread, abs=5.0)
    assert np.mean(used) == pytest.approx(trials, abs=3.0)


QUEST = QuestSettings(minimum=0.02, maximum=2.0, count=21, thresholds=25, trials=40)
YES_NO = replace(QUEST, guesses=(0.0, 0.1, 0.2))


def shape_of(name, ratio, slope):
    """Return F of level/threshold, by the formulas of the textbooks."""
    log = slope * np.log(ratio)
    if name == "weibull":
        return 1.0 - np.exp(-math.log(2.0) * ratio**slope)
    if name == "logistic":
        return 1.0 / (1.0 + np.exp(-log))
    cdf = np.vectorize(NormalDist().cdf)
    return cdf(log) if name == "phi" else 2.0 * cdf(NormalDist().inv_cdf(0.75) * ratio**slope) - 1.0


class PlainQuest:
    """QUEST+ in five dimensions (level, threshold, slope, lapse, guess), by the entropy of every possible posterior."""

    def __init__(self, settings, guess):
        self.settings = settings
        self.levels = np.logspace(math.log10(settings.minimum), math.log10(settings.maximum), settings.count)
        self.thresholds = np.logspace(math.log10(settings.minimum), math.log10(settings.maximum), settings.thresholds)
        lapses, guesses = np.array(settings.lapses), np.array(settings.guesses or (guess,))
        ratio = self.levels[:, None, None] / self.thresholds[None, :, None]
        f = shape_of(settings.shape, ratio, np.array(settings.slopes)[None, None, :])[:, :, :, None, None]
        right = guesses + (1.0 - guesses - lapses[:, None]) * f
        self.right = np.clip(right, 1e-12, 1.0 - 1e-12)
        self.posterior = np.ones(self.right.shape[1:]) / self.right[0].size
        self.shown: list[int] = []

    def choose(self):
        """Return the number of the best level, and by how much it is better than the next [nat]."""
        expected = np.zeros(len(self.levels))
        for likelihood in (self.right, 1.0 - self.right):
            joint = likelihood * self.posterior
            share = joint.sum(axis=(1, 2, 3, 4))
            after = joint / share[:, None, None, None, None]
            expected -= share * (after * np.log(np.maximum(after, 1e-300))).sum(axis=(1, 2, 3, 4))
        repeats = self.settings.max_repeats
        if len(self.shown) >= repeats and len(set(self.shown[-repeats:])) == 1:
            expected[self.shown[-1]] = np.inf
        best, second = np.sort(expected)[:2]
        return int(np.argmin(expected)), float(second - best)

    def add_outcome(self, place, correct):
        self.shown.append(place)
        self.posterior = self.posterior * (self.right[place] if correct else 1.0 - self.right[place])
        self.posterior /= self.posterior.sum()

    def threshold(self):
        mass, values = self.posterior.sum(axis=(1, 2, 3)), np.log(self.thresholds)
        mean = float((mass * values).sum())
        return math.exp(mean), math.sqrt(float((mass * (values - mean) ** 2).sum()))


@pytest.mark.parametrize(
    ("settings", "guess"),
    [
        (QUEST, 0.5),
        (replace(QUEST, shape="dprime", slopes=(0.7, 1.0, 1.4)), 0.5),
        (replace(QUEST, shape="logistic", slopes=(2.0, 4.0)), 0.25),
        (replace(QUEST, shape="phi", slopes=(1.0, 3.0), max_repeats=1), 0.0),
        (YES_NO, 0.0),
    ],
    ids=["weibull", "dprime", "logistic-4AFC", "phi-yes-no", "guesses"],
)
def test_quest_agrees_with_a_direct_implementation(settings, guess):
    rng = np.random.default_rng(17)
    quest, plain = QuestPlus(settings, guess), PlainQuest(settings, guess)
    for _ in range(settings.trials):
        best, margin = plain.choose()
        chosen = int(np.argmin(np.abs(plain.levels - quest.level())))
        assert chosen == best or margin < 1e-9
        assert quest.level() == pytest.approx(plain.levels[chosen], rel=1e-12)
        correct = bool(rng.random() < guess + (0.98 - guess) * (1.0 - 0.5 ** ((plain.levels[chosen] / 0.2) ** 1.3)))
        quest.add_outcome(quest.level(), correct)
        plain.add_outcome(chosen, correct)
    report = quest.report()
    assert (report["estimate"], report["log_sd"]) == pytest.approx(plain.threshold(), rel=1e-9)
    assert report["trials"] == settings.trials and quest.finished


GOLDEN_LEVELS = "12 11 9 8 13 12 12 11 10 10 9 8 11 11 10 10 10 9 9 7 10 10 10 9 10 9 9 9 7 10 9 9 9 10 9 9 9 8 9 9"
"""Level numbers chosen with `QUEST` if answers are correct from level number 9 on."""


def test_quest_choices_are_reproducible():
    quest = QuestPlus(QUEST, 0.5)
    grid = np.geomspace(QUEST.minimum, QUEST.maximum, QUEST.count)
    levels = run(quest, lambda level: bool(level > 0.99 * grid[9]))
    assert " ".join(str(np.argmin(np.abs(grid - level))) for level in levels) == GOLDEN_LEVELS


def test_quest_ends_at_the_posterior_deviation():
    settings = replace(QUEST, trials=500, least_trials=25, posterior_sd=0.3)
    quest, rng = QuestPlus(settings, 0.5), np.random.default_rng(3)
    run(quest, lambda level: bool(rng.random() < 0.5 + 0.49 * (1.0 - 0.5 ** ((level / 0.2) ** 1.3))))
    assert 25 <= quest.trials < 200 and quest.report()["log_sd"] <= 0.3


def test_quest_uses_the_level_that_was_shown():
    asked, shown = QuestPlus(QUEST, 0.5), QuestPlus(QUEST, 0.5)
    for _ in range(20):
        asked.add_outcome(asked.level(), True)
        shown.add_outcome(0.9 * asked.level(), True)
    assert shown.report()["estimate"] < asked.report()["estimate"]


def test_quest_stays_finite_after_impossible_answers():
    quest = QuestPlus(replace(QUEST, lapses=(0.0,)), 0.0)
    for _ in range(40):
        quest.add_outcome(2.0, False)
        quest.add_outcome(0.02, True)
    report = quest.report()
    assert all(math.isfinite(report[name]) for name in ("estimate", "log_sd")) and math.isfinite(quest.level())


def test_quest_is_unbiased_and_its_intervals_cover_the_truth():
    """w75 = 0.18, lapse 1 %, 56 trials: by another program 0.97 of the truth, 24 % of spread, 95 to 98 % held."""
    settings = QuestSettings(
        minimum=0.01, maximum=1.0, count=25, thresholds=31, shape="dprime", slopes=(0.7, 1.0, 1.4), trials=56
    )
    rng = np.random.default_rng(21)
    ratios, held = [], 0
    for _ in range(200):
        quest = QuestPlus(settings, 0.5)
        run(quest, lambda level: bool(rng.random() < proportion(level)))
        report = quest.report()
        ratios.append(report["estimate"] / 0.18)
        held += report["interval"][0] <= 0.18 <= report["interval"][1]
    assert 0.9 < np.mean(ratios) < 1.03 and 0.17 < np.std(ratios) / np.mean(ratios) < 0.28
    assert 184 <= held <= 199


TABLES: list[dict[str, Any]] = [
    {"kind": "staircase", "start": 1.0, "minimum": 0.1, "maximum": 4.0, "reversals": 6},
    {"kind": "quest+", "minimum": 0.1, "maximum": 4.0, "trials": 20, "count": 20, "thresholds": 20},
    {"kind": "constant", "levels": [0.1, 0.2, 0.4], "repeats": 4},
    {"kind": "adjustment", "starts": [1.0, 4.0], "repeats": 3},
    {"kind": "estimation", "levels": [1.0, 2.0, 4.0], "repeats": 3},
    {"kind": "series", "level": 0.3, "trials": 7},
]
STAIRS = {"kind": "staircase", "start": 1.0, "minimum": 0.01, "maximum": 10.0}
GRID = {"kind": "quest+", "minimum": 0.02, "maximum": 2.0}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table["kind"]))
def test_procedure_is_reproducible_and_reports_json(table):
    procedures = [make_procedure(table, guess=0.5, seed=SEED) for _ in range(2)]
    json.dumps(procedures[0].report(), allow_nan=False)  # before the first trial, too
    first, second = (run(procedure) for procedure in procedures)
    assert first == second and len(first) > 5
    report = json.loads(json.dumps(procedures[0].report(), allow_nan=False))
    assert report["kind"] == table["kind"] and report["finished"] and report["trials"] == len(first)
    assert {"estimate", "target_percent"} <= report.keys()


def test_constant_stimuli_are_balanced_and_counted():
    procedure = make_procedure(TABLES[2] | {"repeats": 30}, guess=0.5, seed=SEED)
    levels = run(procedure)
    assert Counter(levels) == {0.1: 30, 0.2: 30, 0.4: 30}
    assert longest_repeat([round(10 * level) for level in levels]) <= 2
    counts = [(one["level"], one["correct"], one["total"]) for one in procedure.report()["counts"]]
    assert counts == [(0.1, 0, 30), (0.2, 0, 30), (0.4, 30, 30)]


def test_order_depends_on_the_seed():
    other = make_procedure(TABLES[2], guess=0.5, seed=trial_seed(3, "P02", 1, 1, 0))
    assert run(other) != run(make_procedure(TABLES[2], guess=0.5, seed=SEED))


def test_estimation_never_repeats_a_magnitude():
    levels = run(make_procedure(TABLES[4] | {"repeats": 50}, guess=0.5, seed=SEED))
    assert longest_repeat([round(level) for level in levels]) == 1


def test_adjustment_reports_mean_and_deviation():
    procedure = make_procedure(TABLES[3] | {"repeats": 2}, guess=0.5, seed=SEED)
    starts = []
    for value in (1.9, 2.1, 2.0, 2.4):
        starts.append(procedure.level())
        procedure.add_outcome(value, True)
    report = procedure.report()
    assert sorted(starts) == [1.0, 1.0, 4.0, 4.0]
    assert report["estimate"] == pytest.approx(2.1) and report["sd"] == pytest.approx(0.2160, abs=1e-4)
    assert report["settings"] == [1.9, 2.1, 2.0, 2.4]


def test_series_reports_the_percentage_correct():
    procedure = make_procedure(TABLES[5], guess=0.5, seed=SEED)
    for k in range(7):
        procedure.add_outcome(procedure.level(), k < 5)
    report = procedure.report()
    assert (report["correct"], report["trials"]) == (5, 7)
    assert report["percent_correct"] == pytest.approx(71.43, abs=0.01)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, r"procedure\.kind is missing"),
        ({"kind": "quest"}, "unknown kind of procedure 'quest'. Did you mean 'quest\\+'"),
        ({"kind": "series", "level": 1.0, "trail": 3}, "Did you mean"),
        ({"kind": "series"}, r"procedure\.level is missing"),
        ({"kind": "constant", "levels": [0.1]}, r"procedure\.levels = \[0\.1\]: .*at least 2 of them"),
        ({"kind": "estimation"}, r"procedure\.levels = \(\)"),
        ({"kind": "adjustment", "starts": "high"}, r"procedure\.starts = 'high'"),
        (STAIRS | {"start": 20.0}, r"procedure\.start = 20: must be from"),
        (STAIRS | {"steps": ()}, r"procedure\.steps = \(\): must be a list of numbers greater than 0"),
        (STAIRS | {"steps": (1.0, -2.0)}, r"procedure\.steps"),
        (STAIRS | {"steps": [1.0, True]}, r"procedure\.steps"),
        (STAIRS | {"down": 5}, r"procedure\.down = 5: must be a whole number"),
        (STAIRS | {"dropped": 12}, r"procedure\.dropped = 12: must be less than"),
        (STAIRS | {"trials": 200}, r"procedure\.most_trials = 150: must be at least"),
        (GRID | {"maximum": 0.01}, r"procedure\.maximum = 0\.01: must be greater than procedure\.minimum"),
        (
            GRID | {"lapses": (0.6,)},
            r"procedure\.lapses = \(0\.6,\): must be a list of numbers from 0 to less than 0\.5",
        ),
        (GRID | {"slopes": ()}, r"procedure\.slopes"),
        (GRID | {"count": 500, "thresholds": 500}, "must be at most 2000000"),
    ],
)
def test_invalid_procedure_table_is_refused(table, words):
    with pytest.raises(ConfigurationError, match=words):
        make_procedure(table, guess=0.5, seed=SEED)


def test_trial_seed_uses_every_part_of_the_address():
    addresses = [(1, 2, 3, 4, 5), (2, 2, 3, 4, 5), (1, 3, 3, 4, 5), (1, 2, 4, 4, 5), (1, 2, 3, 5, 5), (1, 2, 3, 4, 6)]
    states = [tuple(trial_seed(*address).generate_state(4)) for address in addresses]
    states += [tuple(trial_seed(1, code, 3, 4, 5).generate_state(4)) for code in ("2", "P02", "p02")]
    assert len(set(states)) == len(states)


def test_trial_seeds_are_stable_across_versions():
    """Later versions must resume the journals of this one."""
    assert trial_seed(20, "P01", 1, 2, 3).generate_state(2).tolist() == [325828995, 436289720]


def test_child_generators_are_independent():
    first = child(SEED, 3).random(4)
    child(SEED, 2).random(4)
    assert (child(SEED, 3).random(4) == first).all()


def test_invalid_seed_is_refused():
    with pytest.raises(ConfigurationError, match="numbers from 0"):
        trial_seed(1, 2, -1, 0, 0)


@pytest.mark.parametrize("count", range(1, 10))
def test_williams_square_balances_places_and_predecessors(count):
    rows = williams(count)
    assert len(rows) == (count if count % 2 == 0 or count == 1 else 2 * count)
    places = Counter((place, each) for row in rows for place, each in enumerate(row))
    follows = Counter(pair for row in rows for pair in pairwise(row))
    assert set(places.values()) == {len(rows) // count} and len(places) == count**2
    assert len(follows) == count * (count - 1) and len(set(follows.values())) <= 1
    assert all(first != second for first, second in follows)
    assert williams_order(count, len(rows)) == rows[0]


@pytest.mark.parametrize(("items", "longest"), [(2, 1), (3, 1), (7, 2)])
def test_permuted_blocks_are_balanced_without_long_runs(items, longest):
    order = permuted_blocks(items, 12, SEED, longest_run=longest)
    blocks = [order[start : start + items] for start in range(0, len(order), items)]
    assert len(blocks) == 12 and all(sorted(block) == list(range(items)) for block in blocks)
    assert longest_repeat(order) <= longest


def test_blocks_without_long_runs_are_constructed_if_none_is_drawn(monkeypatch):
    monkeypatch.setattr(methods, "_TRIES", 0)
    for items, longest in ((2, 1), (5, 1), (2, 2)):
        order = permuted_blocks(items, 12, SEED, longest_run=longest)
        assert longest_repeat(order) <= longest and sorted(order[-items:]) == list(range(items))


def test_permuted_blocks_extend_shorter_ones():
    assert permuted_blocks(5, 8, SEED)[:20] == permuted_blocks(5, 4, SEED)
    assert permuted_blocks(5, 8, SEED) != permuted_blocks(5, 8, trial_seed(12, "P01", 1, 2, 0))


def test_impossible_order_is_refused():
    with pytest.raises(ConfigurationError, match="one item 4 times"):
        permuted_blocks(1, 4, SEED, longest_run=2)
    with pytest.raises(ConfigurationError, match="at least 1"):
        permuted_blocks(0, 4, SEED)


def test_catch_positions_are_spread_over_both_kinds():
    found = catch_positions(203, 0.1, SEED)
    assert len(found) == 20 and min(found) >= 3
    assert sorted((place - 3) // 10 for place in found) == list(range(20))
    assert Counter(found.values()) == {"null": 10, "easy": 10}
    assert len({(place - 3) % 10 for place in found}) > 4  # the place in a stretch is drawn


def test_catch_positions_extend_shorter_sessions():
    long = catch_positions(300, 0.07, SEED)
    for trials in (3, 20, 77, 150):
        assert catch_positions(trials, 0.07, SEED) == {place: kind for place, kind in long.items() if place < trials}


def test_catch_rate_is_validated():
    assert catch_positions(100, 0.0, SEED) == {}
    with pytest.raises(ConfigurationError, match=r"from 0 to 0\.5"):
        catch_positions(100, 0.6, SEED)


SEED = trial_seed(3, "P01", 1, 1, 0)


def make_tracks(lengths, seed=3):
    tables = [{"kind": "series", "level": 1.0 + k, "trials": length} for k, length in enumerate(lengths)]
    series = [make_procedure(table, guess=0.5, seed=SEED) for table in tables]
    return Tracks(series, trial_seed(seed, "P01", 1, 1, 0))


def run_tracks(tracks):
    order = []
    while not tracks.finished:
        track, level = tracks.next()
        assert (track, level) == tracks.next() == (track, 1.0 + track)
        tracks.add_outcome(track, level, True)
        order.append(track)
    return order


def test_tracks_alternate_until_they_are_finished():
    tracks = make_tracks((20, 20, 5))
    order = run_tracks(tracks)
    assert [procedure.report()["trials"] for procedure in tracks.procedures] == [20, 20, 5]
    assert Counter(order) == {0: 20, 1: 20, 2: 5}
    assert all(sorted(order[k : k + 3]) == [0, 1, 2] for k in range(0, 15, 3))
    assert all(sorted(order[k : k + 2]) == [0, 1] for k in range(15, 45, 2))


def test_track_order_does_not_depend_on_other_lengths():
    long, short = run_tracks(make_tracks((20, 20, 20))), run_tracks(make_tracks((20, 20, 5)))
    rounds = [[track for track in long[3 * k : 3 * k + 3] if track < 2 or k < 5] for k in range(20)]
    assert short == [track for each in rounds for track in each]
