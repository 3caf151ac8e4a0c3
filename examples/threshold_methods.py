"""Compare 2-down/1-up with QUEST+ at equal numbers of trials: scatter, bias, power (docs/studies/methods.md).

Simulated people do two conditions with each method. All answers are fitted with one psychometric function on one grid.
Usage: ``python examples/threshold_methods.py [--people N] [--picture FILE.png]``
"""

import argparse
import copy
import math
from statistics import NormalDist

import numpy as np

from apps.experiment.observers import make_observer
from apps.experiment.power import enough, plan
from apps.experiment.procedures.methods import child, make_procedure, person_seed, trial_seed
from apps.experiment.procedures.settings import possible_levels, procedure_settings
from apps.experiment.settings import PowerSettings
from apps.experiment.trial import TrialView
from calibration.psychometric import psychometric_tables

AXIS, REFERENCE, SEED = "law.force", 1.0, 1
LENGTHS, COMPARED = (20, 30, 40, 60, 80), 40
NUMBERS = (4, 6, 8, 10, 12, 16, 20, 24, 32)
RATIO, RATIO_SPREAD = 1.3, 0.1

RANGE = {"minimum": 0.01, "maximum": 1.0}
QUEST = {"kind": "quest+", **RANGE, "count": 21, "thresholds": 41, "shape": "dprime", "trials": max(LENGTHS)}
LEVELS = np.array(possible_levels(procedure_settings(QUEST)))  # 2 dB apart: staircases, too, have no others
START = float(LEVELS[17])
STAIRCASE = {"kind": "staircase", **RANGE, "start": START, "down": 2, "reversals": 200, "most_trials": max(LENGTHS)}
EQUAL = STAIRCASE | {"steps": [4.0, 4.0, 2.0], "ratio": 1.0}
WEIGHTED = STAIRCASE | {"steps": [8.0, 8.0, 4.0], "ratio": 0.5}
KNOWN = QUEST | {"slopes": [1.0], "lapses": [0.02], "thresholds": 81}  # of the observer, who hides nothing else
FITTED = {"QUEST+": QUEST, "2-down/1-up": EQUAL, "2-down/1-up, half steps down": WEIGHTED}
OWN = {"2-down/1-up, mean of reversals": EQUAL, "QUEST+ that knows slope and lapses": KNOWN}
METHODS = (*FITTED, *OWN)
_MOST = 0.95
"""Minimum fraction of sessions with an estimate for a point to be drawn; the other sessions would bias the point."""
FLOOR = "floor (Cramér and Rao)"
COLOURS = dict(zip(METHODS, ("#0072B2", "#D55E00", "#009E73", "#8A8A8A", "#56B4E9"), strict=True))
INK = "#222222"

NORMAL = NormalDist()


def information(z, lapse):
    """Return the Fisher information of a trial on ln(threshold), for known slope and lapses.

    `z` is the level in standard deviations of a comparison: P = lapse + (1 - 2 lapse) Phi(z), and z falls by its own
    value when ln(threshold) rises by 1, so that (dP/d ln threshold)^2 / (P (1 - P)) is the information.
    """
    p = lapse + (1.0 - 2.0 * lapse) * NORMAL.cdf(z)
    return ((1.0 - 2.0 * lapse) * z * NORMAL.pdf(z)) ** 2 / (p * (1.0 - p))


def best(lapse):
    """Return the z at which a trial tells most, and the least deviation of ln(threshold) after one trial there.

    The bound of Cramer and Rao: of n trials no unbiased estimate scatters by less than that divided by sqrt(n).
    """
    every = np.linspace(0.05, 4.0, 8000)
    told = [information(float(z), lapse) for z in every]
    return float(every[int(np.argmax(told))]), 1.0 / math.sqrt(max(told))


def run(table, person, rng):
    """Simulate a procedure; return the indices of its levels, the answers, and ln of its estimate at each length."""
    procedure = make_procedure(table, guess=0.5, seed=np.random.SeedSequence(0))
    places, right, own = [], [], []
    for _ in range(max(LENGTHS)):
        level = procedure.level()
        order = 1 + int(rng.random() < 0.5)
        values = (REFERENCE, REFERENCE + level)
        trial = TrialView("discrimination", AXIS, REFERENCE, level, values if order == 2 else values[::-1], order)
        right.append(person.answer(trial, rng).correct(trial))
        procedure.add_outcome(level, right[-1])
        places.append(int(np.argmin(np.abs(LEVELS - level))))
        if len(places) in LENGTHS:
            own.append(math.log(procedure.report()["estimate"] or math.nan))
    return np.array(places), np.array(right), np.array(own)


def fitted(tables, places, right):
    """Return ln of the level at 75 % correct that is fitted to answers, for each length."""
    found, count = [], len(LEVELS)
    for trials in LENGTHS:
        sums = np.bincount(places[:trials], right[:trials], count), np.bincount(places[:trials], minlength=count)
        found.append(math.log(tables.threshold(*sums, 0.75).value))
    return np.array(found)


def people_of(count):
    """Give simulated people, one after the other: the same person for each of the two conditions, and the seeds."""
    spread = math.sqrt(math.log1p(RATIO_SPREAD**2))
    for number in range(count):
        typical = make_observer({}, seed=person_seed(SEED, number))
        for condition, factor in enumerate((1.0, RATIO)):
            seed, person = trial_seed(SEED, number, 1, condition + 1, 0), copy.copy(typical)
            if condition:
                person.acuity_factor *= factor * math.exp(spread * float(child(seed, 0).standard_normal()))
            yield number, condition, person, seed


def simulate(people):
    """Let people do both conditions; return ln of thresholds (methods, lengths, people, 2), and their truths."""
    tables = psychometric_tables(LEVELS, guess=0.5, shape="dprime", scale="log")
    found, truth = np.empty((len(METHODS), len(LENGTHS), people, 2)), np.empty((len(METHODS), people, 2))
    to_target = math.log(NORMAL.inv_cdf(procedure_settings(EQUAL).target) / NORMAL.inv_cdf(0.75))
    for number, condition, person, seed in people_of(people):
        truth[:, number, condition] = math.log(person.truth(AXIS, REFERENCE)["increment_75"])
        for method, table in enumerate((*FITTED.values(), *OWN.values())):
            places, right, own = run(table, person, child(seed, 1, method))
            fits = method < len(FITTED)
            found[method, :, number, condition] = fitted(tables, places, right) if fits else own
    truth[METHODS.index("2-down/1-up, mean of reversals")] += to_target
    return found, truth


def moments(errors):
    """Return mean and deviation of the errors, the standard error of each, and the number of errors."""
    known = errors[np.isfinite(errors)]
    count, off = len(known), known - known.mean()
    sd = float(known.std(ddof=1))
    sd_error = math.sqrt(max(float(np.mean(off**4)) - sd**4, 0.0) / count) / (2.0 * sd)
    return float(known.mean()), sd / math.sqrt(count), sd, sd_error, count


def tell_errors(found, truth, floor):
    """Print scatter and bias by method and trials; return the scatter with its standard error (methods, lengths, 2)."""
    scatter = np.empty((*found.shape[:2], 2))
    print("| trials | method | scatter | bias | efficiency | not known |\n|---|---|---|---|---|---|")
    for k, trials in enumerate(LENGTHS):
        for method, name in enumerate(METHODS):
            errors = (found[method, k] - truth[method]).ravel()
            mean, mean_error, sd, sd_error, count = moments(errors)
            scatter[method, k] = (sd, sd_error) if count > _MOST * len(errors) else math.nan
            share = (floor / sd) ** 2 / trials
            print(
                f"| {trials} | {name} | {sd:.3f} ± {sd_error:.3f} | {mean:+.3f} ± {mean_error:.3f} | "
                f"{share:.2f} ± {2.0 * share * sd_error / sd:.2f} | {1.0 - count / len(errors):.1%} |"
            )
        print(f"| {trials} | {FLOOR} | {floor / math.sqrt(trials):.3f} | 0 | 1 | |")
    return scatter


def tell_power(found, truth, floor):
    """Print and return the power of studies of different sizes, for every method and for the floor."""
    ratios = {name: np.diff(rows[LENGTHS.index(COMPARED)])[:, 0] for name, rows in zip(METHODS, found, strict=True)}
    noise = floor / math.sqrt(COMPARED) * child(trial_seed(SEED, 0, 2, 0, 0), 0).standard_normal(truth[0].shape)
    ratios[FLOOR] = np.diff(truth[0] + noise)[:, 0]
    settings = PowerSettings(ratio=RATIO, ratio_spread=RATIO_SPREAD, participants=NUMBERS)
    print(f"| method, {COMPARED} trials a condition | {' | '.join(map(str, NUMBERS))} | enough |")
    print("|---" * (len(NUMBERS) + 2) + "|")
    plans = {}
    for name, values in ratios.items():
        plans[name] = rows = plan(values[np.isfinite(values)], settings)
        cells = [f"{row.power:.2f} ± {(row.high - row.low) / 3.92:.2f}" for row in rows]
        print(f"| {name} | {' | '.join(cells)} | {enough(rows, 0.8) or 'none'} |")
    return plans


def draw(path, scatter, plans, floor):
    """Draw scatter over trials and power over participants."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4.6), dpi=110, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    for method, name in enumerate(METHODS):
        left.errorbar(
            LENGTHS, scatter[method, :, 0], 1.96 * scatter[method, :, 1], fmt="o-", color=COLOURS[name], markersize=4
        )
    left.plot(LENGTHS, floor / np.sqrt(LENGTHS), "--", color=INK)
    left.set(xscale="log", yscale="log", xlabel="trials", ylabel="scatter of ln(threshold)")
    left.set_title("How well a threshold is known", fontsize=10)
    left.set_xticks(LENGTHS, [str(trials) for trials in LENGTHS])
    ticks = (0.15, 0.2, 0.3, 0.4, 0.5, 0.7)
    left.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    left.minorticks_off()
    for name, rows in plans.items():
        dashed = name not in COLOURS
        right.fill_between(
            NUMBERS, [r.low for r in rows], [r.high for r in rows], color=COLOURS.get(name, INK), alpha=0.15
        )
        line = "--" if dashed else "o-"
        right.plot(NUMBERS, [r.power for r in rows], line, color=COLOURS.get(name, INK), markersize=4, label=name)
    right.axhline(0.8, color="#B0B0B0", linewidth=0.8)
    right.set(xlabel="participants", ylabel="power", ylim=(0.0, 1.02))
    right.set_title(f"To find a ratio of {RATIO:g}, {COMPARED} trials a condition", fontsize=10)
    figure.legend(*right.get_legend_handles_labels(), fontsize=9, frameon=False, ncols=3, loc="outside lower center")
    for axes in (left, right):
        axes.grid(True, color="#E6E6E6", linewidth=0.6)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.savefig(path)


def main():
    """Simulate, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=4000, help="how many people are simulated")
    parser.add_argument("--picture", help="draw into this file")
    options = parser.parse_args()
    typical = make_observer({}, seed=person_seed(SEED, 0)).settings
    z, floor = best(typical.lapse)
    percent = 100.0 * (typical.lapse + (1.0 - 2.0 * typical.lapse) * NORMAL.cdf(z))
    print(f"{options.people} simulated people; a trial tells most of a threshold where {percent:.1f} % are correct;")
    print(f"the bound is {floor:.3f}/sqrt(trials)\n")
    found, truth = simulate(options.people)
    scatter = tell_errors(found, truth, floor)
    print()
    plans = tell_power(found, truth, floor)
    if options.picture:
        draw(options.picture, scatter, plans, floor)


if __name__ == "__main__":
    main()
