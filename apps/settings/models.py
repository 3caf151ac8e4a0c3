"""Available models and laws, their compatibility with devices, and their default parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from haptics.device import Causality
from haptics.elements.catalogue import CLASSIC_MODELS, FOUR_MODELS, LAWS
from haptics.errors import CausalityError, ConfigurationError
from haptics.settings import unknown_name

Table = dict[str, Any]

MODELS: dict[str, tuple[Causality, ...]] = {
    model: tuple(places) for model, places in (FOUR_MODELS | CLASSIC_MODELS).items()
}
"""Causalities of every model, listed here to refuse a wrong pair before any compilation."""


def fitting() -> dict[str, tuple[str, ...]]:
    """Return the compatible models of every device."""
    from devices import describe_backends

    return {
        backend.name: tuple(model for model, causalities in MODELS.items() if backend.causality in causalities)
        for backend in describe_backends()
    }


def law_defaults(name: str, causality: Causality) -> Table:
    """Return the default parameters of a law.

    They are near the force level of experiments with devices of the same causality.
    """
    from haptics.elements.tables import LAWS as CLASSES

    values = {field.name: _usual(field, causality) for field in dataclasses.fields(CLASSES[name])}
    return {name: value for name, value in values.items() if value is not None}


def element_defaults(model: str, causality: Causality) -> Table:
    """Return the default parameters of `model` in the form that suits the device."""
    from haptics.elements.tables import element_class, element_fields

    fields = element_fields(element_class(model, causality))
    values = {field.name: _usual(field, causality) for field in fields}
    return {field.name: field.default if values[field.name] is None else values[field.name] for field in fields}


def _usual(field: dataclasses.Field[Any], causality: Causality) -> Any:
    """Return the session default of a field without a dataclass default; None if it has none."""
    usual = field.metadata.get("usual")
    return usual[causality is Causality.IMPEDANCE] if isinstance(usual, tuple) else usual


def causality_of(device: str) -> Causality:
    """Return the causality of `device`."""
    from devices import find_backend

    return find_backend(device).causality


def pair(device: str, model: str) -> tuple[str, str]:
    """Return device and model. A missing name is chosen to fit; an incompatible pair is refused."""
    from devices import find_backend

    pairs = fitting()
    if device:
        find_backend(device)
    if model:
        require_known("model", model, MODELS)
    if not device:
        device = next(name for name, models in pairs.items() if not model or model in models)
    if not model:
        model = "C" if "C" in pairs[device] else pairs[device][0]
    if model not in pairs[device]:
        together = "; ".join(f"{name} with model {_listed(models)}" for name, models in pairs.items())
        raise CausalityError(
            f"model {model} and device {device} do not go together: the model is an {MODELS[model][0]}, the device "
            f"not. Possible: {together}."
        )
    return device, model


def _listed(models: Iterable[str]) -> str:
    """Format a list of models: the four of the paper, then the classic ones."""
    four = [model for model in models if model in FOUR_MODELS]
    return f"{' or '.join(four)} (or {', '.join(model for model in models if model not in four)})"


def require_known(kind: str, name: Any, allowed: Iterable[str]) -> None:
    """Raise `ConfigurationError` unless `name` is one of the `allowed` names. `name` may have any type."""
    if not isinstance(name, str) or name not in allowed:
        raise unknown_name(kind, str(name), allowed)


def law_table(table: Table, causality: Causality) -> Table:
    """Return the complete table of the law.

    The table of a custom law contains the source of its function.
    """
    name = table.get("name", "coulomb")
    if "file" in table or "source" in table or name == "custom":
        return _custom_law(table)
    from haptics.elements.tables import CLOSED_FORM_SUFFIX, plugin_table, require_plugin

    exact = str(name).removesuffix(CLOSED_FORM_SUFFIX)
    if exact in LAWS:
        return {"name": name, **law_defaults(exact, causality), **table}
    values = {key: value for key, value in table.items() if key != "name"}
    return plugin_table(require_plugin(str(name)), values)


def _custom_law(table: Table) -> Table:
    from haptics.friction.custom_law import CustomLaw

    values = {key: value for key, value in table.items() if key not in {"name", "file", "source"}}
    name, source, file = str(table.get("name", "custom")), table.get("source"), table.get("file")
    if name != "custom" and (file is not None or name in LAWS):
        given = "file" if file is not None else "source"
        raise ConfigurationError(
            f"law.{given} with law.name = {name!r}: a {given} holds a custom law; leave law.name out."
        )
    if file is not None:
        try:
            source = Path(str(file)).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise ConfigurationError(f"law.file = {str(file)!r}: cannot be read ({error}).") from error
    if not isinstance(source, str):
        raise ConfigurationError("law.file is missing: it names the Python file with the function of a custom law.")
    law = CustomLaw.from_table(source, values)
    return {"name": name, "source": law.source, **law.parameters}


def device_settings(name: str, device: Table, hand: Table, seed: int, period: float) -> Table:
    """Return the settings of the device.

    A virtual or emulated device also gets a hand, a seed, and the period.
    """
    from devices import has_simulated_hand

    if not has_simulated_hand(name, device):
        if hand:
            raise ConfigurationError(
                f"hand.{next(iter(hand))}: a hand can be set for a virtual or an emulated device only, not for {name}."
            )
        return device
    given = device.get("hand", {})
    if not isinstance(given, dict):
        raise ConfigurationError(f"device.hand = {given!r}: must be a table.")
    given = given | hand
    return {"seed": seed, "period": period, **device, "hand": {"name": "minimum-jerk", **given}}
