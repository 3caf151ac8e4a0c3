"""Models, laws and scenes of a session: available names, compatibility with devices, and complete tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haptics.device import Causality
from haptics.elements.catalogue import CLASSIC_MODELS, FOUR_MODELS, LAWS
from haptics.errors import CausalityError, ConfigurationError
from haptics.settings import unknown_name

if TYPE_CHECKING:
    from haptics.scenes import Scene

Table = dict[str, Any]

MODELS: dict[str, tuple[Causality, ...]] = {
    model: tuple(places) for model, places in (FOUR_MODELS | CLASSIC_MODELS).items()
}
"""Causalities of every model, listed here to refuse a wrong pair before any compilation."""

WALL = ("friction", "stiffness", "damping")
"""Parameters that can be set for all walls of a scene at once, as ``wall.NAME``."""

TEXTURE = ("amplitude", "wavelength")
"""Parameters that can be set for all textures of a scene at once, as ``texture.NAME``."""


# --- models and devices -----------------------------------------------------------------------------------------------


def fitting() -> dict[str, tuple[str, ...]]:
    """Return the compatible models of every device."""
    from devices import describe_backends

    return {
        backend.name: tuple(model for model, causalities in MODELS.items() if backend.causality in causalities)
        for backend in describe_backends()
    }


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
        possible = []
        for name, models in pairs.items():
            four = " or ".join(one for one in models if one in FOUR_MODELS)
            classic = ", ".join(one for one in models if one not in FOUR_MODELS)
            possible.append(f"{name} with model {four} (or {classic})")
        raise CausalityError(
            f"model {model} and device {device} do not go together: the model is an {MODELS[model][0]}, the device "
            f"not. Possible: {'; '.join(possible)}."
        )
    return device, model


def require_known(kind: str, name: Any, allowed: Iterable[str]) -> None:
    """Raise `ConfigurationError` unless `name` is one of the `allowed` names. `name` may have any type."""
    if not isinstance(name, str) or name not in allowed:
        raise unknown_name(kind, str(name), allowed)


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
    return {"seed": seed, "period": period, **device, "hand": {"name": "minimum-jerk", **given, **hand}}


# --- laws and elements ------------------------------------------------------------------------------------------------


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


# --- scenes -----------------------------------------------------------------------------------------------------------


def is_name(text: str) -> bool:
    """Return True if `text` can only be the name of a shipped scene, not a path."""
    return "/" not in text and not text.endswith(".toml")


def with_scene_in_session(tables: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of a file, with a scene named at the top level moved to ``session.scene``."""
    named = tables.get("scene")
    if not isinstance(named, str):
        return tables
    rest = {name: table for name, table in tables.items() if name != "scene"}
    return {**rest, "session": {"scene": named, **rest.get("session", {})}}


def scene_of(tables: Mapping[str, Any]) -> Scene | None:
    """Return the scene that the tables of a session name or contain: a file, a shipped scene, or a complete table.

    Raises
    ------
    ConfigurationError
        If the scene is invalid.
    """
    whole = tables.get("scene")
    named = tables.get("session", {}).get("scene") or (whole if isinstance(whole, str) else "")
    if not named and whole in (None, ""):
        return None
    from haptics.scenes import read_scene, scene_from_table

    if named:
        if not isinstance(named, str):
            raise ConfigurationError(
                f"scene = {named!r}: must be a scene file, or the name of a scene that is shipped."
            )
        return read_scene(named)
    if not isinstance(whole, Mapping):
        raise ConfigurationError(f"scene = {whole!r:.60}: must be a scene file, a name, or the table of a scene.")
    return scene_from_table(whole)


def law_on(scene: Scene | None, table: Table, causality: Causality) -> Table:
    """Return the complete table of a session's law. With a scene, it is the background law.

    Raises
    ------
    ConfigurationError
        If a different law is given besides a scene.
    """
    if scene is None:
        return law_table(table, causality)
    from haptics.scenes.scene import exact, title_of

    law: Any = exact(scene.law)
    own = {"name": title_of(scene.law), **{field.name: getattr(law, field.name) for field in dataclasses.fields(law)}}
    other = [name for name, value in table.items() if own.get(name) != value]
    if other:
        raise ConfigurationError(
            f"law.{other[0]} = {table[other[0]]!r}: this session uses the laws of its scene; change them in "
            "the scene's file, or leave the scene out."
        )
    return own


def with_background(scene: Scene | None, law: Table) -> Scene | None:
    """Return a scene with another background law."""
    from haptics.elements.tables import make_law

    return None if scene is None else dataclasses.replace(scene, law=make_law(law))
