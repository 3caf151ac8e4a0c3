"""Selectable options of a session, each with a one-line description."""

from __future__ import annotations

import re

from apps.settings.config import SessionConfig
from apps.settings.models import fitting
from devices import describe_backends, is_virtual
from devices.virtual.hands.registry import HANDS
from haptics.device import Causality
from haptics.elements.tables import LAWS, MODELS

_HANDS_WITH_FILES = ("recorded", "scripted-force")

ABOUT_HANDS = {
    "minimum-jerk": "A hand in software: smooth strokes and curves, with rests and a little tremor.",
    "scripted-force": "A hand in software that only pushes: a force written down over time.",
    "recorded": "A hand in software that repeats a path from a file.",
    "mouse": "Your mouse over the plane is the hand.",
}
"""One-line descriptions of the hands."""

_SOURCE = re.compile(r" \((?=[^()]*\b(?:19|20)\d\d)")
"""Start of a literature reference in a sentence."""


def choices(config: SessionConfig) -> dict[str, tuple[str, ...]]:
    """Return the devices selectable in a window with their models: the virtual ones and the present one."""
    return {name: fit for name, fit in fitting().items() if is_virtual(name) or name == config.device}


def hands_to_choose(present: str) -> tuple[str, ...]:
    """Return the hands selectable in a window: those that need no file, and the present one."""
    return tuple(name for name in HANDS if name == present or name not in _HANDS_WITH_FILES)


def laws_to_choose(present: str) -> tuple[str, ...]:
    """Return the laws selectable in a window: those defined by parameters alone, and the present one."""
    return (*LAWS, *(() if present in LAWS else (present,)))


def about(causality: Causality) -> dict[str, dict[str, str]]:
    """Return one-line descriptions of all devices, models, laws, and hands, by kind and name.

    A model with two forms is described in the form for `causality`.
    """
    models = {name: forms.get(causality, next(iter(forms.values()))) for name, forms in MODELS.items()}
    return {
        "device": {backend.name: backend.description for backend in describe_backends()},
        "model": {name: _first_sentence(cls) for name, cls in models.items()},
        "law": {name: _first_sentence(cls) for name, cls in LAWS.items()},
        "hand": dict(ABOUT_HANDS),
    }


def _first_sentence(cls: type) -> str:
    """Return the first line of a docstring without its TeX formula and its literature reference."""
    line = (cls.__doc__ or "").strip().splitlines()[0]
    return f"{_SOURCE.split(line.partition(': :math:')[0])[0].rstrip('.')}."
