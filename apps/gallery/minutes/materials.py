"""Ice, wood, rubber: one stroke over three materials, with the specified friction in each.

The scene is the shipped scene ``ice-wood-rubber``. The hand moves at a constant speed, without acceleration. The force
that it feels in a material is the level of the law at that speed, computed here from the parameters in the scene file.
"""

from __future__ import annotations

import math
import tomllib
from typing import TYPE_CHECKING, Any

import numpy as np

from apps.gallery.showing import Guide, Outcome, Scene, Showing, Tables, derived, write_path
from apps.reproduce.style import AMBER, BLUE, INK, PINK, dress
from haptics.scenes import find_scene

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from haptics.records import Rows

TITLE = "ice, wood, rubber: one stroke over three materials"

GUIDE = Guide(
    do="Stroke from left to right, over ice, wood and rubber, and back.",
    feel="It glides, it drags, it grips; at the borders nothing jumps.",
    see="Force of the hand over the place, and the level of each material's law.",
)

SCENE, SPEED, REACH = "ice-wood-rubber", 0.04, 0.07
MATERIALS = {"ice": 1, "wood": 0, "rubber": 2}
"""Region number of each material in the recordings. The background is 0."""

_COLOURS = {"ice": BLUE, "wood": AMBER, "rubber": PINK}
_LEAD, _RAMP = 0.3, 0.1
"""Duration of the rest and of the acceleration [s]."""

_AWAY = 0.15
"""Time after which the hand has settled at a border [s].

Parameters are blended over 2 mm at each border.
"""


def demonstrate(showing: Showing) -> Outcome:
    """Stroke over the materials and compare felt and specified friction."""
    path = write_path(showing.folder / "stroke.csv", _knots(showing.brief), -REACH)
    rows = np.array(showing.show(_tables(path, float(_knots(showing.brief)[-1, 0]))).rows)
    asked = {name: asked_of(name) for name in MATERIALS}
    over = {name: mean_hand_force(rows, name) / asked[name] for name in MATERIALS}
    worst = 100.0 * max(abs(share - 1.0) for share in over.values())
    return Outcome(
        worst,
        2.0,
        "%",
        "what is felt of ice, wood and rubber misses what was asked for by at most",
        [derived(f"{name}: felt over asked", share, 0.02) for name, share in over.items()],
        lambda figure: _draw(figure, rows, asked),
        [Scene("ice, wood, rubber", rows)],
        {"felt_over_asked": over},
    )


def asked_of(material: str) -> float:
    """Return the friction of a material at the speed of the stroke, according to the scene file [N]."""
    tables = tomllib.loads(find_scene(SCENE).read_text(encoding="utf-8"))
    law: dict[str, Any] = dict(tables["law"])
    for region in tables["regions"]:
        if region["name"] == material:
            law |= region["law"]
    excess = law["static_force_n"] - law["kinetic_force_n"]
    falling = excess * math.exp(-SPEED / law["stribeck_velocity_m_per_s"])
    return float(law["kinetic_force_n"] + falling + law["viscosity_ns_per_m"] * SPEED)


def mean_hand_force(rows: Rows, material: str) -> float:
    """Return the mean force of the hand along its motion in a material, excluding its borders [N]."""
    time, place = rows["time"], rows["position"][:, 0]
    borders = np.concatenate(([0], np.flatnonzero(np.diff(rows["region"])) + 1, [len(rows) - 1]))
    away = np.abs(time[:, None] - time[borders]).min(axis=1) > _AWAY
    inside = (rows["region"] == MATERIALS[material]) & away & (np.abs(place) < REACH - 0.01)
    return float(np.mean(np.sign(rows["velocity"][inside, 0]) * rows["hand_force"][inside, 0]))


def _knots(brief: bool) -> np.ndarray:
    """Return the motion as times [s] and speeds [m/s]: one stroke if `brief`, otherwise two."""
    knots, now = [[0.0, 0.0]], 0.0
    for direction in (1.0,) if brief else (1.0, -1.0):
        begin, length = now + _LEAD, 2.0 * REACH / SPEED
        knots += [[begin, 0.0], [begin + _RAMP, direction * SPEED]]
        now = begin + length + _RAMP
        knots += [[now - _RAMP, direction * SPEED], [now, 0.0]]
    return np.array(knots)


def _tables(path: str, duration: float) -> Tables:
    return {
        "session": {"model": "C", "duration": duration, "scene": SCENE},
        "device": {"name": "virtual-joystick", "damping": 0.0},
        "hand": {"name": "recorded", "file": path, "centre": False, "stiffness": 1500.0, "damping": 30.0},
        "element": {"stiffness": 2000.0, "damping": 40.0},
    }


def _draw(figure: Figure, rows: Rows, asked: dict[str, float]) -> None:
    axes = figure.subplots()
    place = 1e3 * rows["position"][:, 0]
    sign = np.where(rows["velocity"][:, 0] < 0.0, -1.0, 1.0)
    axes.plot(place, sign * rows["hand_force"][:, 0], color=INK, linewidth=0.9, label="hand, along its motion")
    for name, number in MATERIALS.items():
        inside = place[rows["region"] == number]
        span = float(inside.min()), float(inside.max())
        axes.axvspan(*span, color=_COLOURS[name], alpha=0.15)
        axes.plot(
            span, (asked[name],) * 2, color=_COLOURS[name], linewidth=3.0, label=f"{name}: {asked[name]:.2f} N asked"
        )
    axes.set_ylim(0.0, 1.3 * max(asked.values()))
    axes.legend(loc="upper left")
    dress(axes, "place [mm]", "force [N]", TITLE)
