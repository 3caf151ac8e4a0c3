"""The reproductions by ID. A module is imported when its reproduction is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Protocol, cast

from apps import catalogue
from apps.reproduce.outcome import Outcome

ALL = "all"

REPRODUCTIONS: dict[str, str] = {
    "kikuuwe-implicit": "kikuuwe_implicit",
    "kikuuwe-constraints": "kikuuwe_constraints",
    "kikuuwe-fig6": "kikuuwe_fig6",
    "kikuuwe-fig7": "kikuuwe_fig7",
    "kikuuwe-fig8": "kikuuwe_fig8",
    "kikuuwe-fig11": "kikuuwe_fig11",
    "kikuuwe-fig13": "kikuuwe_fig13",
    "kikuuwe-fig14": "kikuuwe_fig14",
    "kikuuwe-stability": "kikuuwe_stability",
    "kikuuwe-approximation": "kikuuwe_approximation",
    "kikuuwe-fig16": "kikuuwe_fig16",
    "kikuuwe-fig17": "kikuuwe_fig17",
    "kikuuwe-fig19": "kikuuwe_fig19",
    "kikuuwe-fig20": "kikuuwe_fig20",
    "kikuuwe-lag": "kikuuwe_lag",
}
"""ID to the module of `apps.reproduce` that has its ``TITLE`` and its ``reproduce``, in the order of ``all``."""


class Reproduction(Protocol):
    """What the module of a reproduction has."""

    TITLE: str

    def reproduce(self) -> Outcome:
        """Compute it anew."""


def chosen(names: Iterable[str]) -> list[str]:
    """Return the IDs that `names` ask for, ``all`` meaning all; see `apps.catalogue.chosen`."""
    return catalogue.chosen("reproduction", names, REPRODUCTIONS, ALL)


def load(name: str) -> Reproduction:
    """Import the module of a reproduction."""
    return cast(Reproduction, importlib.import_module(f"apps.reproduce.{REPRODUCTIONS[name]}"))
