"""Run data for front ends, from the session's message or from a recording. No window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from apps.front_ends.messages import Parameter, SessionStarted
from haptics.device import Causality
from haptics.errors import HapticError
from haptics.records import Rows

if TYPE_CHECKING:
    from haptics.scenes import Scene

LEVEL_KEYS = ("law.force", "law.kinetic_force", "law.static_force")
"""Keys of the parameters that are levels of the friction force [N]."""

Corner = tuple[float, float]
"""A point (x, y) [m]."""


@dataclass(frozen=True)
class RunInfo:
    """Data of a run for display.

    Attributes
    ----------
    workspace : (corner, corner)
        Lower and upper corner [m].
    force_scale : float
        Typical force [N], which determines the length of the vectors and the minimum height of the force axis.
    parameters : tuple of Parameter
        Parameters that can be, or were, set.
    mouse : bool
        Whether the mouse over the plane acts as the hand.
    max_energy : float
        Limit of the energy injected by the loop [J].
    dead_man : str
        Control that must be held for any output: ``none``, ``key`` or ``button``.
    law : str
        Name of the law; empty if unknown.
    law_settings : mapping
        Further settings of the law: its parameters, and the source of a custom law.
    scene : Scene or None
        The scene; None if the law is the same everywhere.
    """

    device: str = "no device"
    model: str = "-"
    causality: str = Causality.IMPEDANCE
    rate: float = 1000.0
    hand: str = ""
    workspace: tuple[Corner, Corner] = ((-0.05, -0.05), (0.05, 0.05))
    force_scale: float = 4.0
    parameters: tuple[Parameter, ...] = ()
    recording: str = ""
    mouse: bool = False
    duration: float | None = None
    max_energy: float = 0.1
    dead_man: str = "none"
    law: str = ""
    law_settings: Mapping[str, Any] = field(default_factory=dict)
    scene: Scene | None = None

    @property
    def title(self) -> str:
        """Model and device as text."""
        return f"model {self.model} on {self.device}"

    @property
    def force_name(self) -> str:
        """Name of the displayed force vectors: the commanded force, or the measured force of the hand."""
        return "command" if self.causality == Causality.IMPEDANCE else "hand force"


def from_message(message: SessionStarted) -> RunInfo:
    """Return the run data contained in `message`."""
    return RunInfo(
        device=message.device,
        model=message.model,
        causality=message.causality,
        rate=message.rate_hz,
        hand=message.hand,
        workspace=message.workspace,
        force_scale=message.force_scale,
        parameters=message.parameters,
        recording=message.recording,
        mouse=message.mouse,
        duration=message.duration,
        max_energy=message.max_energy,
        dead_man=message.dead_man,
        law=message.law,
        law_settings=message.law_settings,
        scene=message.scene,
    )


def from_metadata(metadata: Mapping[str, Any], rows: Rows) -> RunInfo:
    """Return the run data of a recording. Missing entries are estimated from the rows."""
    device = metadata.get("device")
    spec: Mapping[str, Any] = device if isinstance(device, Mapping) else {"name": device or "unknown device"}
    model = str(metadata.get("model", "?"))
    guess = Causality.ADMITTANCE if model in ("A", "D") else Causality.IMPEDANCE
    parameters = tuple(_parameters(metadata.get("parameters") or _configured(metadata)))
    limits = metadata.get("limits") or {}
    law = dict(_configured(metadata).get("law", {}))
    return RunInfo(
        device=str(spec.get("name", "unknown device")),
        model=model,
        causality=str(metadata.get("causality", spec.get("causality", guess))),
        rate=float(metadata.get("rate_hz", 1000.0)),
        hand=str(metadata.get("hand", "") or _hand(metadata)),
        workspace=_workspace(spec, rows),
        force_scale=float(metadata.get("force_scale", _force_scale(parameters, rows))),
        parameters=parameters,
        recording=str(metadata.get("recording", "")),
        max_energy=float(limits.get("max_energy", RunInfo.max_energy)),
        dead_man=str(limits.get("dead_man", RunInfo.dead_man)),
        law=str(law.pop("name", "")),
        law_settings=law,
        scene=_scene(metadata),
    )


def levels(parameters: Mapping[str, float]) -> tuple[float, ...]:
    """Return the levels of the law [N] in `parameters`, without duplicates."""
    return tuple(dict.fromkeys(parameters[key] for key in LEVEL_KEYS if key in parameters))


def region_name(scene: Scene, number: int) -> str:
    """Return the name of region `number` of a scene, 0 for its background; empty if it does not exist."""
    if number <= 0:
        return scene.look if scene.look != "plain" else "ground"
    return scene.regions[number - 1].name if number <= len(scene.regions) else ""


def _hand(metadata: Mapping[str, Any]) -> str:
    """Return the name of the hand in a recorded configuration, or an empty string."""
    found: Any = metadata
    for key in ("configuration", "device", "hand", "name"):
        found = found.get(key, "") if isinstance(found, Mapping) else ""
    return str(found)


def _scene(metadata: Mapping[str, Any]) -> Scene | None:
    """Return the scene of a recording, or None if it has no scene or this version cannot read it."""
    configuration = metadata.get("configuration")
    table = configuration.get("scene") if isinstance(configuration, Mapping) else None
    if not isinstance(table, Mapping):
        return None
    from haptics.scenes import scene_from_table

    try:
        return scene_from_table(table)
    except HapticError:
        return None


def _configured(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tables of law and element in a recorded configuration."""
    configuration = metadata.get("configuration")
    tables = configuration if isinstance(configuration, Mapping) else {}
    return {name: tables[name] for name in ("law", "element") if isinstance(tables.get(name), Mapping)}


def _parameters(table: Mapping[str, Any], prefix: str = "") -> list[Parameter]:
    """Flatten a table of numbers: ``{"law": {"force": 4}}`` and ``{"law.force": 4}`` are equivalent."""
    found: list[Parameter] = []
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            found += _parameters(value, f"{name}.")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found.append(_parameter(name, float(value)))
    return found


def _parameter(key: str, value: float) -> Parameter:
    """Return a parameter of a recording, with an estimated range.

    Ranges are not recorded; a positive value gets a decade on either side.
    """
    last = key.rsplit(".", 1)[-1]
    unit = next((unit for word, unit in _UNITS if last.endswith(word)), "")
    if value > 0:
        return Parameter(key, value, value / 10, value * 10, unit, logarithmic=True)
    return Parameter(key, value, min(2 * value, -1.0), max(-2 * value, 1.0), unit)


_UNITS = (
    ("stiffness", "N/m"),
    ("damping", "N s/m"),
    ("viscosity", "N s/m"),
    ("mass", "kg"),
    ("velocity", "m/s"),
    ("force", "N"),
)


def _workspace(spec: Mapping[str, Any], rows: Rows) -> tuple[Corner, Corner]:
    if "workspace_min" in spec and "workspace_max" in spec:
        lower, upper = spec["workspace_min"], spec["workspace_max"]
        return (float(lower[0]), float(lower[1])), (float(upper[0]), float(upper[1]))
    position = rows["position"][np.isfinite(rows["position"]).all(axis=1)]
    if not len(position):
        return RunInfo.workspace
    lower, upper = position.min(axis=0) - 0.01, position.max(axis=0) + 0.01
    return (float(lower[0]), float(lower[1])), (float(upper[0]), float(upper[1]))


def _force_scale(parameters: tuple[Parameter, ...], rows: Rows) -> float:
    known = levels({parameter.key: parameter.value for parameter in parameters})
    if known:
        return max(known)
    friction = np.hypot(rows["friction_force"][:, 0], rows["friction_force"][:, 1])
    friction = friction[np.isfinite(friction)]
    return max(float(np.percentile(friction, 95)), 0.1) if len(friction) else RunInfo.force_scale
