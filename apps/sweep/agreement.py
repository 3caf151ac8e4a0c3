"""Session and bound, cell by cell: where a sweep's sessions are stable, and where the eigenvalues say they must be."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.sweep.design import Sweep

BOUND = "bound_growth_per_s"

Table = dict[str, NDArray[Any]]


def agreement(sweep: Sweep, table: Table) -> dict[str, Any] | None:
    """Return in how many cells of a grid session and bound agree, and what is so where they do not.

    Returns
    -------
    dict or None
        ``cells`` with a bound, ``agree``; ``border`` are those that differ next to a cell where the bound says
        otherwise, ``inside`` all other ones that differ. Of those that differ ``slow`` would grow or fall by less than
        a factor of e in the session, ``quiet`` are stable against a bound that is clearly violated, ``loud`` are
        unstable within it. None without these two outcomes, or where it is no complete grid.
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
    """Tell which cells of a grid have, one step away on any axes, a cell that is `known` and is not as they are."""
    found = np.zeros_like(good)
    for step in itertools.product((-1, 0, 1), repeat=good.ndim):
        here = tuple(slice(max(-s, 0), n + min(-s, 0)) for s, n in zip(step, good.shape, strict=True))
        there = tuple(slice(max(s, 0), n + min(s, 0)) for s, n in zip(step, good.shape, strict=True))
        found[here] |= known[there] & (good[there] != good[here])
    return found


def describe_agreement(found: dict[str, Any]) -> str:
    """Say it in words."""
    return (
        f"bound: {found['agree']} of {found['cells']} cells agree; {found['border']} differ at its border, "
        f"{found['inside']} elsewhere ({found['slow']} too slow for the session to show, {found['quiet']} quiet beyond "
        f"it, {found['loud']} unstable within it)"
    )
