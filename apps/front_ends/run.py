"""Run data for front ends, from the session's message or from a recording. No window."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.front_ends.messages import Parameter, SessionStarted
from haptics.device import Causality
from haptics.elements.catalogue import FORCE_SETTINGS
from haptics.errors import HapticError
from haptics.records import Rows

if TYPE_CHECKING:
    from haptics.scenes import Scene

Floats = NDArray[np.float64]
"""A float64 array of shape (n,)."""
Indices = NDArray[np.intp]
"""An array of indices of shape (n,)."""

Corner = tuple[float, float]
"""A point (x, y) [m]."""

_UNITS = {"stiffness": "N/m", "damping": "N s/m", "viscosity": "N s/m", "mass": "kg", "velocity": "m/s", "force": "N"}
"""Unit of a recorded parameter by the end of its name."""


@dataclass(frozen=True)
class RunInfo:
    """Data of a run for display.

    Attributes
    ----------
    rate : float
        Nominal rate [Hz].
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

    @property
    def values(self) -> dict[str, float]:
        """Value of every parameter by its key."""
        return {parameter.key: parameter.value for parameter in self.parameters}


def from_message(message: SessionStarted) -> RunInfo:
    """Return the run data contained in `message`."""
    common: dict[str, Any] = {one.name: getattr(message, one.name) for one in fields(RunInfo) if one.name != "rate"}
    return RunInfo(rate=message.rate_hz, **common)


def from_metadata(metadata: Mapping[str, Any], rows: Rows) -> RunInfo:
    """Return the run data of a recording. Missing entries are estimated from the rows."""
    device, configuration = metadata.get("device"), metadata.get("configuration")
    spec: Mapping[str, Any] = device if isinstance(device, Mapping) else {"name": device or "unknown device"}
    tables: Mapping[str, Any] = configuration if isinstance(configuration, Mapping) else {}
    configured = {name: tables[name] for name in ("law", "element") if isinstance(tables.get(name), Mapping)}
    law, limits = dict(configured.get("law", {})), metadata.get("limits") or {}
    parameters = tuple(_parameters(metadata.get("parameters") or configured))
    hand: Any = tables
    for key in ("device", "hand", "name"):
        hand = hand.get(key, "") if isinstance(hand, Mapping) else ""
    scene = None
    if isinstance(tables.get("scene"), Mapping):
        from haptics.scenes import scene_from_table

        with contextlib.suppress(HapticError):  # a scene that this version cannot read
            scene = scene_from_table(tables["scene"])
    lower, upper = spec.get("workspace_min"), spec.get("workspace_max")
    if lower is None or upper is None:  # the extent of the motion with a margin
        position = rows["position"][np.isfinite(rows["position"]).all(axis=1)]
        lower, upper = RunInfo.workspace
        if len(position):
            lower, upper = position.min(axis=0) - 0.01, position.max(axis=0) + 0.01
    model = str(metadata.get("model", "?"))
    guess = Causality.ADMITTANCE if model in ("A", "D") else Causality.IMPEDANCE
    force_scale = metadata.get("force_scale")
    if force_scale is None:
        friction = np.hypot(rows["friction_force"][:, 0], rows["friction_force"][:, 1])
        friction = friction[np.isfinite(friction)]
        measured = max(float(np.percentile(friction, 95)), 0.1) if len(friction) else RunInfo.force_scale
        force_scale = max(levels({one.key: one.value for one in parameters}), default=measured)
    return RunInfo(
        device=str(spec.get("name", "unknown device")),
        model=model,
        causality=str(metadata.get("causality", spec.get("causality", guess))),
        rate=float(metadata.get("rate_hz", 1000.0)),
        hand=str(metadata.get("hand", "") or hand),
        workspace=((float(lower[0]), float(lower[1])), (float(upper[0]), float(upper[1]))),
        force_scale=float(force_scale),
        parameters=parameters,
        recording=str(metadata.get("recording", "")),
        max_energy=float(limits.get("max_energy", RunInfo.max_energy)),
        dead_man=str(limits.get("dead_man", RunInfo.dead_man)),
        law=str(law.pop("name", "")),
        law_settings=law,
        scene=scene,
    )


def _parameters(table: Mapping[str, Any], prefix: str = "") -> Iterator[Parameter]:
    """Flatten a table of numbers: ``{"law": {"force": 4}}`` and ``{"law.force": 4}`` are equivalent.

    Ranges are not recorded; a positive value gets a decade on either side.
    """
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from _parameters(value, f"{key}.")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            number, last = float(value), key.rsplit(".", 1)[-1]
            unit = next((unit for word, unit in _UNITS.items() if last.endswith(word)), "")
            if number > 0:
                yield Parameter(key, number, number / 10, number * 10, unit, logarithmic=True)
            else:
                yield Parameter(key, number, min(2 * number, -1.0), max(-2 * number, 1.0), unit)


def levels(parameters: Mapping[str, float]) -> tuple[float, ...]:
    """Return the levels of the law [N] in `parameters`, without duplicates."""
    return tuple(dict.fromkeys(parameters[key] for key in FORCE_SETTINGS if key in parameters))


def region_name(scene: Scene, number: int) -> str:
    """Return the name of region `number` of a scene, 0 for its background; empty if it does not exist."""
    if number <= 0:
        return scene.look if scene.look != "plain" else "ground"
    return scene.regions[number - 1].name if number <= len(scene.regions) else ""


# --- intervals of rows ------------------------------------------------------------------------------------------------


class Runs(NamedTuple):
    """Intervals of rows: the index of the first row of each, and the index after its last row."""

    start: Indices
    stop: Indices


def runs(flags: Floats) -> Runs:
    """Return the intervals in which `flags` is not zero."""
    edges = np.diff(np.concatenate(([0], (flags != 0).astype(np.int8), [0])))
    return Runs(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1))


def means(values: Floats, intervals: Runs) -> Floats:
    """Return the mean of `values` over each interval."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    result: Floats = (sums[intervals.stop] - sums[intervals.start]) / np.maximum(intervals.stop - intervals.start, 1)
    return result
