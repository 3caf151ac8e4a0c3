"""Which models and laws there are, which go with which device, and what they are when nothing is said about them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from haptics.device import Causality
from haptics.errors import CausalityError, ConfigurationError
from haptics.settings import unknown

Table = dict[str, Any]

_ADMITTANCE, _IMPEDANCE = (Causality.ADMITTANCE,), (Causality.IMPEDANCE,)
MODELS: dict[str, tuple[Causality, ...]] = {
    **{"A": _ADMITTANCE, "B": _IMPEDANCE, "C": _IMPEDANCE, "D": _ADMITTANCE},
    **dict.fromkeys(("explicit-coulomb", "karnopp", "quinn", "viscous-ramp"), _ADMITTANCE + _IMPEDANCE),
    **dict.fromkeys(("dahl", "elastoplastic", "hayward-armstrong", "iwan", "lugre", "reset-integrator"), _IMPEDANCE),
}
"""Every model and its causalities, known here so that a wrong pair is refused before anything is compiled."""

ELEMENT_DEFAULTS: dict[str, Table] = {
    "A": {"mass": 2.0},
    "B": {"mass": 0.1, "stiffness": 6000.0, "damping": 10.0},
    "C": {"stiffness": 6000.0, "damping": 10.0},
    "D": {"mass": 2.0, "stiffness": 20000.0, "damping": 400.0},
}
"""Models A and C: the values of the experiments in Kikuuwe et al. 2006, section V. Classic models have their own."""


def _laws(force: float, high: float) -> dict[str, Table]:
    """Return the default laws around a sliding `force`, with a break-away force `high` where the two differ [N]."""
    peak = {"kinetic_force": force, "static_force": high, "stribeck_velocity": 0.15}
    return {
        "coulomb": {"force": high},
        "coulomb-viscous": {"force": high, "viscosity": 5.0},
        "stribeck": peak,
        "gaussian-stribeck": peak,
        "dead-zone-viscous": {"force": high, "viscosity": 10.0, "dead_zone": 0.1},
        "elliptic": {"force_x": high, "force_y": 0.5 * high},
        "asymmetric": {"forward_force": high, "backward_force": force, "sideways_force": high},
    }


LAW_DEFAULTS = {Causality.ADMITTANCE: _laws(5.0, 6.0), Causality.IMPEDANCE: _laws(3.0, 4.0)}
"""The force of the paper's experiments on devices of each kind (Kikuuwe et al. 2006, section V), for every law."""


def fitting() -> dict[str, tuple[str, ...]]:
    """Return every device with the models that go with it."""
    from devices import describe_backends

    return {
        backend.name: tuple(model for model, causalities in MODELS.items() if backend.causality in causalities)
        for backend in describe_backends()
    }


def element_defaults(model: str, causality: Causality) -> Table:
    """Return the default parameters of `model` in the form that suits the device."""
    if model in ELEMENT_DEFAULTS:
        return dict(ELEMENT_DEFAULTS[model])
    from haptics.elements.tables import element_class, element_fields

    return {field.name: field.default for field in element_fields(element_class(model, causality))}


def causality_of(device: str) -> Causality:
    """Return what `device` takes and gives."""
    from devices import describe_backends

    return next(backend.causality for backend in describe_backends() if backend.name == device)


def pair(device: str, model: str) -> tuple[str, str]:
    """Return device and model, the missing one chosen to fit; refuse a pair that does not fit."""
    pairs = fitting()
    if device:
        known("device", device, pairs)
    if model:
        known("model", model, MODELS)
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
    """List models in words: the four of the paper, then the classic ones."""
    four = [model for model in models if model in ELEMENT_DEFAULTS]
    return f"{' or '.join(four)} (or {', '.join(model for model in models if model not in four)})"


def known(kind: str, name: Any, allowed: Iterable[str]) -> None:
    """Raise `ConfigurationError` unless `name` is one of the `allowed` words; whatever else it may be."""
    if not isinstance(name, str) or name not in allowed:
        raise unknown(kind, str(name), allowed)


def law_table(table: Table, causality: Causality) -> Table:
    """Return the complete table of the law; that of a custom law holds the text of its function."""
    if "file" in table or table.get("name") == "custom":
        return _custom_law(table)
    from haptics.elements.tables import CLOSED_FORM_SUFFIX

    defaults = LAW_DEFAULTS[causality]
    name = table.get("name", "coulomb")
    exact = name.removesuffix(CLOSED_FORM_SUFFIX) if isinstance(name, str) else name
    if not isinstance(exact, str) or exact not in defaults:
        raise unknown("law", str(name), [*defaults, "custom"])
    return {"name": name, **defaults[exact], **table}


def _custom_law(table: Table) -> Table:
    from haptics.friction.custom_law import CustomLaw

    values = {key: value for key, value in table.items() if key not in {"name", "file", "source"}}
    name, source, file = table.get("name", "custom"), table.get("source"), table.get("file")
    if name != "custom":
        raise ConfigurationError(f"law.file with law.name = {name!r}: a file holds a custom law; leave law.name out.")
    if file is not None:
        try:
            source = Path(str(file)).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise ConfigurationError(f"law.file = {str(file)!r}: cannot be read ({error}).") from error
    if not isinstance(source, str):
        raise ConfigurationError("law.file is missing: it names the Python file with the function of a custom law.")
    law = CustomLaw.from_table(source, values)
    return {"name": "custom", "source": law.source, **law.parameters}
