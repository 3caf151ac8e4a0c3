"""Tables of the report: differences, fits, d', catch trials, repeated trials, group."""

from __future__ import annotations

import math
from collections.abc import Sequence

from apps.experiment.report.results import ConditionResult, GroupResult, PersonResult
from apps.shared.html import table
from calibration.psychometric import Estimate, Group, Magnitude

_HELD = {True: "yes", False: "no", None: ""}


def number(one: Estimate | None, scale: float = 1.0, form: str = ".3g") -> list[str]:
    """Return the value and the interval as two cells.

    Infinite ends are written as ``open``.
    """
    if one is None:
        return ["", ""]
    sign = {"": "", "above": "> ", "below": "< "}[one.bound]
    low, high = ("open" if math.isinf(end) else format(end * scale, form) for end in (one.low, one.high))
    return [f"{sign}{one.value * scale:{form}}", f"{low} to {high}"]


def with_interval(one: Estimate | None, scale: float = 1.0) -> str:
    """Return the value with its interval in one cell."""
    if one is None:
        return ""
    value, ends = number(one, scale, ".2g")
    return f"{value} ({ends})"


def bracket(unit: str) -> str:
    """Return a unit in brackets for a heading."""
    return f" [{unit}]" if unit else ""


def _used(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table without empty columns."""
    kept = [k for k in range(len(head)) if any(row[k] for row in rows)]
    return table([head[k] for k in kept], [[row[k] for k in kept] for row in rows])


def _heads(unit: str, percent: str) -> list[str]:
    differences = [f"difference{bracket(unit)}", "95 % interval", "Weber fraction [%]", "95 % interval"]
    return ["condition", percent, *differences]


def difference_table(conditions: Sequence[ConditionResult], unit: str, percent: str) -> str:
    """Return the table of just noticeable differences; `percent` is the heading of their percentages."""
    every = [(condition, one) for condition in conditions for one in condition.differences]
    truth = any(one.true_jnd is not None for _, one in every)
    rows = []
    for condition, one in every:
        row = [condition.name, f"{one.percent:g} %", *number(one.jnd), *number(one.weber, 100.0)]
        if truth:
            row += [
                "" if one.true_jnd is None else f"{one.true_jnd:.3g}",
                "" if one.true_weber is None else f"{100.0 * one.true_weber:.3g}",
                _HELD[one.holds_truth],
            ]
        rows.append(row)
    return _used(_heads(unit, percent) + ([f"true{bracket(unit)}", "true [%]", "held"] if truth else []), rows)


def fit_table(conditions: Sequence[ConditionResult], unit: str) -> str:
    """Return the table of slope, lapses, goodness of fit and further checks of every condition."""
    head = ["condition", "trials", "exponent", "lapses [%]", "deviance", "p", f"Spearman-Karber{bracket(unit)}"]
    head += [f"second seems more by{bracket(unit)}", "second preferred by [%]"]
    rows = []
    for one in conditions:
        fit = one.fit
        if fit is None:
            continue
        order = ("", "")
        if one.order is not None:
            order = with_interval(one.order.level), with_interval(one.order.preference, 100.0)
        cells = [with_interval(fit.exponent or fit.slope), with_interval(fit.lapse, 100.0)]
        cells += [f"{fit.deviance:.1f}", f"{fit.deviance_p:.2g}", with_interval(one.check), *order]
        rows.append([one.name, str(len(one.rows)), *cells])
    return _used(head, rows)


def detectability_table(conditions: Sequence[ConditionResult], unit: str) -> str:
    """Return the table of d' and criterion by level."""
    rows = [
        [condition.name, f"{level:.3g} {unit}".strip(), *number(one.d_prime), *number(one.criterion)]
        for condition in conditions
        for level, one in condition.detectability.items()
    ]
    return table(["condition", "level", "d'", "95 % interval", "criterion", "95 % interval"], rows)


def procedure_table(conditions: Sequence[ConditionResult], unit: str) -> str:
    """Return the table of the procedures' estimates, or an empty string without such procedures."""
    rows = []
    for condition in conditions:
        for one in condition.procedures:
            kind = f"{one['kind']} {one.get('rule', '')}".strip()
            estimate = "" if one["estimate"] is None else f"{one['estimate']:.3g}"
            reversals = str(len(one["reversals"])) if "reversals" in one else ""
            clamped = str(len(one["clamped"])) if one.get("clamped") else ""
            percent = f"{one['target_percent']:.1f} %"
            rows.append([one["track"], kind, str(one["trials"]), estimate, percent, reversals, clamped])
    head = ["track", "procedure", "trials", f"its estimate{bracket(unit)}", "correct", "reversals", "at an end"]
    return _used(head, rows) if rows else ""


def group_table(group: GroupResult, unit: str, percent: str) -> str:
    """Return the table of means over participants; `percent` as in `difference_table`."""
    truth = any(one.simulated for one in group.conditions)
    head = [*_heads(unit, percent), "between people (CV)", "participants"]
    head += ["true [%]", "intervals that hold it"] if truth else []
    rows = []
    for one in group.conditions:
        jnd, weber = (None if which is None else which.mean for which in (one.jnd, one.weber))
        row = [one.name, f"{one.percent:g} %", *number(jnd), *number(weber, 100.0), *_spread(one.jnd)]
        if truth:
            row.append("" if one.true_weber is None else f"{100.0 * one.true_weber:.3g}")
            row.append(f"{one.held} of {one.simulated}")
        rows.append(row)
    return _used(head, rows)


def _spread(group: Group | None) -> list[str]:
    if group is None:
        return ["", "0"]
    between = "" if math.isnan(group.cv_between) else f"{group.cv_between:.0%}"
    return [between, f"{group.count}" + (f" and {group.bounds} bounds" if group.bounds else "")]


def people_table(people: Sequence[PersonResult]) -> str:
    """Return the table with a row for every participant."""
    rows = []
    for one in people:
        trials = sum(len(condition.rows) for condition in one.conditions)
        wrong = f"{one.catches.easy_wrong} of {one.catches.easy}" if one.catches.easy else ""
        told = [difference.holds_truth for condition in one.conditions for difference in condition.differences]
        held = [each for each in told if each is not None]
        holding = f"{sum(held)} of {len(held)}" if held else ""
        counts = "no" if one.excluded else "yes"
        rows.append([one.code, str(trials), wrong, str(sum(one.repeated.values())), holding, counts])
    head = ["participant", "trials", "easy catch trials wrong", "repeated", "intervals that hold the truth", "counts"]
    return _used(head, rows)


def catch_table(result: PersonResult) -> str:
    """Return the table of the catch trials."""
    catches, rows = result.catches, []
    if catches.easy:
        rows.append(["easy ones, wrong", f"{catches.easy_wrong} of {catches.easy}", *_percent(catches.lapse)])
    if catches.null:
        said = "none at all: second, yes or different"
        rows.append([said, f"{catches.null_second} of {catches.null}", *_percent(catches.preference)])
    return table(["", "trials", "share [%]", "95 % interval"], rows) if rows else "<p>There were none.</p>"


def _percent(share: Estimate | None) -> list[str]:
    return number(share, 100.0, ".2g")


def repeated_table(result: PersonResult) -> str:
    """Return the table of the reasons for which attempts did not count."""
    if not result.repeated:
        return "<p>No trial was repeated.</p>"
    return table(["why", "attempts"], [[reason, str(count)] for reason, count in result.repeated.items()])


def magnitude_table(found: Magnitude, true: float | None) -> str:
    """Return the table of a power law's exponent, with the true one of a simulated observer."""
    head = ["", "exponent", "95 % interval", "true"]
    return _used(head, [["power law", *number(found.exponent), "" if true is None else f"{true:.3g}"]])
