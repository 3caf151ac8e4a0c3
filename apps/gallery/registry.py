"""Demonstrations by name.

Their modules are imported on demand.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol, cast

from apps.gallery.outcome import Guide, Outcome
from apps.shared.command import select

if TYPE_CHECKING:
    from apps.gallery.showing import Showing

ALL = "all"

DEMONSTRATIONS: dict[str, str] = {
    "holds": "holds",
    "materials": "materials",
    "stick-slip": "stick_slip",
    "four-models": "four_models",
    "encoder": "encoder",
    "delay": "delay",
    "arm": "arm",
    "threshold": "threshold",
}
"""Module in `apps.gallery.minutes` by name of the demonstration, in the order of ``all``."""


class Demonstration(Protocol):
    """Interface of the module of a demonstration."""

    TITLE: str
    GUIDE: Guide

    def demonstrate(self, showing: Showing) -> Outcome:
        """Run the sessions of the demonstration and evaluate them."""


def chosen(name: str) -> list[str]:
    """Return the demonstrations selected by `name`, which may be ``all``; see `apps.shared.command.select`."""
    return select("demonstration", [name], DEMONSTRATIONS, ALL)


def load(name: str) -> Demonstration:
    """Import the module of a demonstration."""
    return cast(Demonstration, importlib.import_module(f"apps.gallery.minutes.{DEMONSTRATIONS[name]}"))
