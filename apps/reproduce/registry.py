"""Registry of the reproductions by ID.

The module of a reproduction is imported on demand.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Protocol, cast

from apps.reproduce.outcome import Outcome
from apps.shared.command import select

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
    "kikuuwe-servo": "kikuuwe_servo",
    "kikuuwe-fig19": "kikuuwe_fig19",
    "kikuuwe-fig20": "kikuuwe_fig20",
    "kikuuwe-lag": "kikuuwe_lag",
    "weigand-fig2": "weigand_fig2",
    "weigand-fig3": "weigand_fig3",
    "weigand-fig7": "weigand_fig7",
    "weigand-fig8": "weigand_fig8",
    "weigand-fig9": "weigand_fig9",
    "weigand-table1": "weigand_table1",
    "machado-fig3": "machado_fig3",
    "machado-fig4": "machado_fig4",
    "machado-fig5": "machado_fig5",
    "machado-fig6": "machado_fig6",
    "machado-fig7": "machado_fig7",
    "machado-fig8": "machado_fig8",
    "machado-fig9": "machado_fig9",
    "machado-fig10": "machado_fig10",
}
"""ID to the module of `apps.reproduce` with its ``TITLE`` and ``reproduce``, in the order of ``all``."""


class Reproduction(Protocol):
    """Interface of the module of a reproduction."""

    TITLE: str

    def reproduce(self) -> Outcome:
        """Compute the reproduction."""


def chosen(names: Iterable[str]) -> list[str]:
    """Return the requested IDs, all of them for ``all``; see `apps.shared.command.select`."""
    return select("reproduction", names, REPRODUCTIONS, ALL)


def load(name: str) -> Reproduction:
    """Import and return the module of a reproduction."""
    return cast(Reproduction, importlib.import_module(f"apps.reproduce.{REPRODUCTIONS[name]}"))
