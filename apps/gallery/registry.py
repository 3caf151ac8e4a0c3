"""The demonstrations by name. A module is imported when it is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol, cast

from apps import catalogue
from apps.gallery.outcome import Guide, Outcome

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
"""Name to the module of `apps.gallery.minutes`, in the order of ``all``."""


class Demonstration(Protocol):
    """What the module of a demonstration has."""

    TITLE: str
    GUIDE: Guide

    def demonstrate(self, showing: Showing) -> Outcome:
        """Run what is to be shown, and measure."""


def chosen(name: str) -> list[str]:
    """Return the names that `name` asks for, ``all`` meaning all; see `apps.catalogue.chosen`."""
    return catalogue.chosen("demonstration", [name], DEMONSTRATIONS, ALL)


def load(name: str) -> Demonstration:
    """Import the module of a demonstration."""
    return cast(Demonstration, importlib.import_module(f"apps.gallery.minutes.{DEMONSTRATIONS[name]}"))
