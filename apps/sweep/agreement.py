"""Comparison of simulated stability with the eigenvalue bound, for each cell of a sweep."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.sweep.design import Sweep

BOUND = "bound_growth_per_s"

Table = dict[str, NDArray[Any]]


def agreement(sweep: Sweep, table: Table) -> dict[str, Any] | None:
    """Count the grid cells in which simulation and eigenvalue bound agree, and classify the other cells.

    Returns
    -------
    dict or None
        Numbers of cells. ``cells`` have a bound, ``agree`` have the same result by both methods. Of the cells that
        differ, ``border`` are next to a cell with the opposite bound, and ``inside`` are all others. Of the cells that
        differ, ``slow`` grow or decay by less than a factor of e during the session, ``quiet`` are stable although the
        bound is clearly violated, and ``loud`` are unstable although the bound is met. None if the sweep lacks one of
        the two outcomes or is not a complete grid.
    """
    counts = [len(axis.all()) for axis in sweep.axes]
    whole = sweep.settings.design == "grid" and sweep.settings.repeats == 1
    if not whole or not {"stable", BOUND} <= table.keys() or len(table[BOUND]) != int(np.prod(counts)):
        return None
    growth = table[BOUND].astype(float).reshape(counts)
    known, stable = np.isfinite(growth), table["stable"].reshape(counts) == 1
    differ = known & (stable != (growth < 0.0))
    slow = differ & (np.abs(growth) * sweep.settings.duration < 1.0)
    border = differ & _beside_other(growth < 0.0, known)
    numbers = {
        "cells": known,
        "agree": known & ~differ,
        "border": border,
        "inside": differ & ~border,
        "slow": slow,
        "quiet": differ & ~slow & stable,
        "loud": differ & ~slow & ~stable,
    }
    return {name: int(np.count_nonzero(cells)) for name, cells in numbers.items()}


def _beside_other(good: NDArray[np.bool_], known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a mask of the cells that have a `known` neighbour of the opposite value.

    Neighbours are at most one step away on each axis.
    """
    found = np.zeros_like(good)
    for step in itertools.product((-1, 0, 1), repeat=good.ndim):
        here = tuple(slice(max(-s, 0), n + min(-s, 0)) for s, n in zip(step, good.shape, strict=True))
        there = tuple(slice(max(s, 0), n + min(s, 0)) for s, n in zip(step, good.shape, strict=True))
        found[here] |= known[there] & (good[there] != good[here])
    return found


def describe_agreement(found: dict[str, Any]) -> str:
    """Return the agreement as text."""
    return (
        f"bound: {found['agree']} of {found['cells']} cells agree; {found['border']} differ at its border, "
        f"{found['inside']} elsewhere ({found['slow']} too slow for the session to show, {found['quiet']} quiet beyond "
        f"it, {found['loud']} unstable within it)"
    )
