"""What can be chosen for a session, and a line on each choice for people."""

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
"""A line on each hand."""

_SOURCE = re.compile(r" \((?=[^()]*\b(?:19|20)\d\d)")
"""Where a sentence goes on with the paper it is from."""


def choices(config: SessionConfig) -> dict[str, tuple[str, ...]]:
    """Return the devices that can be chosen in a window, with their models: those in software, and the present one."""
    return {name: fit for name, fit in fitting().items() if is_virtual(name) or name == config.device}


def hands_to_choose(present: str) -> tuple[str, ...]:
    """Return the hands that can be chosen in a window: those that need no file, and the present one."""
    return tuple(name for name in HANDS if name == present or name not in _HANDS_WITH_FILES)


def laws_to_choose(present: str) -> tuple[str, ...]:
    """Return the laws that can be chosen in a window: those made from their numbers alone, and the present one."""
    return (*LAWS, *(() if present in LAWS else (present,)))


def about(causality: Causality) -> dict[str, dict[str, str]]:
    """Return a line on every device, model (in its form for `causality` if it has two), law and hand, by its kind."""
    models = {name: forms.get(causality, next(iter(forms.values()))) for name, forms in MODELS.items()}
    return {
        "device": {backend.name: backend.description for backend in describe_backends()},
        "model": {name: _first_sentence(cls) for name, cls in models.items()},
        "law": {name: _first_sentence(cls) for name, cls in LAWS.items()},
        "hand": dict(ABOUT_HANDS),
    }


def _first_sentence(cls: type) -> str:
    """Return the first line of a docstring without its formula in TeX and the paper that it is from."""
    line = (cls.__doc__ or "").strip().splitlines()[0]
    return f"{_SOURCE.split(line.partition(': :math:')[0])[0].rstrip('.')}."
