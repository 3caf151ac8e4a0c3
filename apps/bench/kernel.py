"""Benchmark ``kernel``: time of a step of every element, compared with C and with other simulators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from apps.bench import simulators, workload
from apps.bench.outcome import Progress, table_of
from apps.bench.workload import compare, measure, nanoseconds, repeated
from apps.shared.command import Answer
from haptics.elements.catalogue import FOUR_MODELS
from haptics.elements.models import Element
from haptics.records import Rows

TOLERANCE = 1e-12
"""Maximum difference between the results of the two loops, relative to the largest value of the column."""

_REPEATS = 4
"""Runs per slice. A single run would mainly measure cache misses caused by the other candidates."""

_COMPARED = ("reference_ns_per_step", "ratio", "spread", "ratio_by_address", "difference")

_COLUMNS = {
    "element": "model",
    "causality": "causality",
    "law": "law",
    "ns_per_step": "ns/step",
    "reference_ns_per_step": "C ns/step",
    "ratio": "ratio",
    "spread": "spread",
    "ratio_by_address": "to C by address",
}

Row = dict[str, Any]


def run(progress: Progress) -> Answer:
    """Measure all elements, then other simulators."""
    reference: workload.Reference | None = None
    try:
        reference = workload.Reference()
        remark = f"C: {reference.compiler}"
    except workload.NoReference as error:
        remark = f"no ratios to C: {error}"
    exact, classics = workload.elements(), workload.classic_elements()
    rows = []
    for done, element in enumerate((*exact, *classics)):
        progress(done / (len(exact) + len(classics) + 1), f"model {element.model}, {element.law.name}")
        rows.append(measured(element, reference))
    progress(1.0, "other simulators")
    rivals = [simulators.measured(simulator) for simulator in simulators.SIMULATORS]
    own, classic = rows[: len(exact)], rows[len(exact) :]
    text = (
        f"{table_of(_COLUMNS, own)}\n{remark}\n\n"
        "Classic models, Coulomb's law, compared with model A (admittance) or C (impedance):\n"
        f"{table_of(_COLUMNS, classic)}\n\n"
        f"Other simulators, one mass with dry friction; compared with model A:\n{table_of(simulators.COLUMNS, rivals)}"
    )
    result = {"reference": remark, "rows": own, "classic": classic, "simulators": rivals}
    return Answer(result, text, error=disagreement(own))


def measured(element: Element, reference: workload.Reference | None) -> Row:
    """Return the row of `element`: its time and the time of its equivalent in C.

    An element without an equivalent in C is compared with the simplest one of its causality.
    """
    results = workload.empty_results()
    row: Row = {"element": element.model, "causality": str(element.causality), "law": element.law.name}
    own = workload.own_loop(element, results)
    if reference is None:
        times = measure([repeated(own, _REPEATS)]) / _REPEATS
        return {**row, "ns_per_step": nanoseconds(times[:, 0], workload.STEPS), **dict.fromkeys(_COMPARED)}
    like = element if element.model in FOUR_MODELS else workload.plainest(element.causality)
    expected, record, motion = workload.empty_results(), reference.record(like), workload.inputs(like.causality)
    loop = f"{like.model.lower()}_{like.law.name}"
    by_address = reference.loop(f"{loop}_by_address", record, motion, workload.empty_results())
    candidates = own, reference.loop(loop, record, motion, expected), by_address
    times = measure([repeated(each, _REPEATS) for each in candidates]) / _REPEATS
    return {
        **row,
        "ns_per_step": nanoseconds(times[:, 0], workload.STEPS),
        "reference_ns_per_step": nanoseconds(times[:, 1], workload.STEPS),
        **compare(times[:, 0], times[:, 1]),
        "ratio_by_address": compare(times[:, 0], times[:, 2])["ratio"],
        "difference": difference(results, expected) if like is element else None,
    }


def difference(results: Rows, expected: Rows) -> float:
    """Return the maximum difference between two runs, each column relative to its largest value."""
    largest = 0.0
    for name in expected.dtype.names or ():
        size = max(float(np.abs(expected[name]).max()), np.finfo(float).tiny)
        largest = max(largest, float(np.abs(results[name] - expected[name]).max()) / size)
    return largest


def disagreement(rows: Sequence[Row]) -> str:
    """Return a message about the first loop whose results differ from C, or an empty string.

    Times of loops with different results must not be compared.
    """
    for row in rows:
        if row["difference"] is not None and not row["difference"] <= TOLERANCE:
            return (
                f"model {row['element']} with law {row['law']} and its loop in C differ by {row['difference']:.1e}; "
                f"must be at most {TOLERANCE:g}, or their times cannot be compared."
            )
    return ""
