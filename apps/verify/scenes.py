r"""Parameters of a law at positions in a scene, computed from the recorded table of the scene.

Later regions override earlier ones, each with the weight :math:`w = 3 t^2 - 2 t^3`, :math:`t = 1/2 - d/(1.5 b)` clipped
to 0 to 1, at the signed distance d from its outline, negative inside. The border b is the stated one for models A and
D. For C it is wider by dF/K, for B 1.5 times the border of C, where dF is the largest difference of a force of the law
between two positions (docs/how_to/scenes.md). An image is averaged over ceil(sqrt(2) b/pitch) pixels along both axes
and interpolated bilinearly. A texture multiplies forces by :math:`1 + a g`, with a sine or with noise between -1 and 1.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.laws import Law, NotUnderstood, law_of
from apps.verify.recorded import Floats

Numbers = dict[str, Any]

LOOSE = 1e-11
"""Relative accuracy of a looked-up parameter, limited by the rounding of the position over a short border."""

UNSURE = 1e-12
"""Distance to an outline [m] within which rounding decides on which side a position is."""

WIDEST = 0.1
TILE = 32
_UNITS = ("_ns_per_m", "_m_per_s", "_rad", "_n")
_MOST = 70_000


class Surface:
    """Scene as seen by an element.

    Parameters
    ----------
    table : mapping
        Recorded table of the scene.
    model, element : str, mapping
        Model of the element and its parameters, which determine the width of the borders.

    Raises
    ------
    NotUnderstood
        If the table is not a scene.
    """

    def __init__(self, table: Any, model: str, element: Mapping[str, float]) -> None:
        if not isinstance(table, Mapping) or not isinstance(table.get("law"), Mapping):
            raise NotUnderstood("its table is not a scene")
        unknown = set(table) - {"name", "look", "border_m", "law", "regions", "walls"}
        if unknown:
            raise NotUnderstood(f"its entry {sorted(unknown)[0][:40]!r} is unknown to the verification")
        self._table: Mapping[str, Any] = table
        self._border, stiffness = float(table.get("border_m", 0.002)), element.get("stiffness", 0.0)
        if model in ("B", "C") and stiffness > 0.0:
            wider = self._border + _spread(table) / stiffness
            self._border = min(1.5 * wider if model == "B" else wider, WIDEST)

    def law_at(self, places: Floats) -> Law:
        """Return the law at positions, (n, 2), with (n,) arrays as parameters."""
        name, background = _law(self._table["law"])
        numbers = {key: np.full(len(places), value) for key, value in background.items()}
        for region in _regions(self._table):
            t = np.clip(0.5 - distance(region, places) / (1.5 * self._border), 0.0, 1.0)
            weight = t * t * (3.0 - 2.0 * t)
            own = _numbers(region, places, self._border)
            if own.keys() != numbers.keys():
                raise NotUnderstood("the laws of the scene have not the same numbers")
            for key, value in own.items():
                numbers[key] = numbers[key] + weight * (value - numbers[key])
        return law_of({"name": name, **{_plain(key): value for key, value in numbers.items()}}, LOOSE)

    def regions_at(self, places: Floats) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the regions at positions, (n,), and where rounding decides the region."""
        found, unsure = np.zeros(len(places), np.int64), np.zeros(len(places), bool)
        for number, region in enumerate(_regions(self._table), 1):
            depth = distance(region, places)
            found[depth < 0.0] = number
            unsure |= np.abs(depth) < UNSURE
        return found, unsure


def _spread(table: Mapping[str, Any]) -> float:
    """Return the largest difference of a force parameter of the law between two positions [N]."""
    laws = [(table["law"], 0.0)]
    for region in _regions(table):
        share = float(region["texture"].get("amplitude", 0.3)) if "texture" in region else 0.0
        image = region.get("image")
        laws += [(law, share) for law in ((image["lower"], image["upper"]) if image is not None else (region["law"],))]
    found: dict[str, list[float]] = {}
    for law, share in laws:
        for key, value in _law(law)[1].items():
            if key.endswith("_n"):
                found.setdefault(key, []).extend((value * (1.0 - share), value * (1.0 + share)))
    return max(max(values) - min(values) for values in found.values())


def _regions(table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    regions = table.get("regions", [])
    if not isinstance(regions, list) or len(regions) > 1000 or not all(isinstance(one, Mapping) for one in regions):
        raise NotUnderstood("its regions are no list of tables")
    return regions


def _law(table: Mapping[str, Any]) -> tuple[str, dict[str, float]]:
    """Return the name of a law and its parameters, with the keys of the table."""
    return str(table["name"]), {key: float(value) for key, value in table.items() if key != "name"}


def _plain(key: str) -> str:
    """Return a key without its unit suffix."""
    return next((key.removesuffix(unit) for unit in _UNITS if key.endswith(unit)), key)


def background(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the law of the background in the format of the settings."""
    name, numbers = _law(table["law"])
    return {"name": name, **{_plain(key): value for key, value in numbers.items()}}


def _numbers(region: Mapping[str, Any], places: Floats, border: float) -> Numbers:
    """Return the parameters well inside a region, each a number or an (n,) array."""
    image = region.get("image")
    if image is None:
        numbers: Numbers = dict(_law(region["law"])[1])
    else:
        lower, upper = _law(image["lower"])[1], _law(image["upper"])[1]
        share = _share(image, places, border)
        numbers = {key: value + share * (upper[key] - value) for key, value in lower.items()}
    if "texture" in region:
        texture = region["texture"]
        factor = 1.0 + float(texture.get("amplitude", 0.3)) * _pattern(texture, places)
        numbers = {key: value * factor if key.endswith("_n") else value for key, value in numbers.items()}
    return numbers


def distance(region: Mapping[str, Any], places: Floats) -> Floats:
    """Return the signed distances of positions from the outline of a region, (n,) [m]."""
    if "circle" in region:
        circle = region["circle"]
        return np.asarray(np.hypot(*(places - np.array(circle["center_m"], float)).T) - float(circle["radius_m"]))
    if "half_plane" in region:
        plane = region["half_plane"]
        normal = np.array(plane["normal"], float)
        return np.asarray((places - np.array(plane["point_m"], float)) @ (normal / math.hypot(*normal)))
    if "polygon" in region:
        corners = np.array(region["polygon"]["points_m"], float)
        if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) > 1000:
            raise NotUnderstood("a polygon is no list of points")
        nearest, winding = np.full(len(places), np.inf), np.zeros(len(places))
        for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            edge, to = b - a, places - a
            along = np.clip(to @ edge / (edge @ edge), 0.0, 1.0)
            nearest = np.minimum(nearest, np.hypot(*(to - along[:, None] * edge).T))
            ahead = places - b
            turn = np.arctan2(to[:, 0] * ahead[:, 1] - to[:, 1] * ahead[:, 0], (to * ahead).sum(axis=1))
            winding += turn
        return np.asarray(np.where(np.abs(winding) > math.pi, -nearest, nearest))
    raise NotUnderstood("a region has no shape that is known here")


def _pattern(texture: Mapping[str, Any], places: Floats) -> Floats:
    """Return the pattern of a texture at positions, (n,), between -1 and 1."""
    angle, wavelength = float(texture.get("angle_rad", 0.0)), float(texture.get("wavelength_m", 0.002))
    c, s = math.cos(angle), math.sin(angle)
    own = np.stack((c * places[:, 0] + s * places[:, 1], c * places[:, 1] - s * places[:, 0]), axis=1) / wavelength
    if texture.get("pattern", "grating") == "grating":
        return np.asarray(np.sin(2.0 * math.pi * own[:, 0]))
    if texture["pattern"] != "noise":
        raise NotUnderstood(f"the texture {str(texture['pattern'])[:40]!r} is not known here")
    cell = np.floor(own)
    u = own - cell
    u = u * u * (3.0 - 2.0 * u)
    j, i = (np.mod(cell[:, k], TILE).astype(int) for k in range(2))
    # The noise tile by rows: SplitMix64 from a seed, the upper 53 bits scaled to -1 to 1.
    seed, most, values = int(texture.get("seed", 1)), 2**64, []
    for k in range(1, TILE * TILE + 1):
        z = (seed + k * 0x9E3779B97F4A7C15) % most
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % most
        z = (z ^ z >> 27) * 0x94D049BB133111EB % most
        values.append(((z ^ z >> 31) >> 11) / 2.0**52 - 1.0)
    tile = np.array(values).reshape(TILE, TILE)
    corners = [[tile[(i + down) % TILE, (j + right) % TILE] for right in range(2)] for down in range(2)]
    rows = [one + u[:, 0] * (other - one) for one, other in corners]
    return np.asarray(rows[0] + u[:, 1] * (rows[1] - rows[0]))


def _share(image: Mapping[str, Any], places: Floats, border: float) -> Floats:
    """Return the interpolated grey value of an image at positions, (n,), from 0 (black) to 1 (white)."""
    rows, columns = int(image["rows"]), int(image["columns"])
    levels = np.frombuffer(base64.b64decode(image["levels_base64"]), np.uint8)
    if not 0 < rows * columns == len(levels) <= _MOST:
        raise NotUnderstood("an image has not the pixels that it says")
    grey = levels.reshape(rows, columns) / 255.0
    (x, y), (width, height) = image["corner_m"], image["size_m"]
    dx, dy = float(width) / columns, float(height) / rows
    grey = _averaged(_averaged(grey, border, dx).T, border, dy).T
    places = np.nan_to_num(places)  # positions of unusable samples; their result is not used
    u = np.clip((places[:, 0] - x) / dx - 0.5, 0.0, columns - 1.0)
    v = np.clip((y + height - places[:, 1]) / dy - 0.5, 0.0, rows - 1.0)
    j, i = np.floor(u).astype(int), np.floor(v).astype(int)
    right, below = np.minimum(j + 1, columns - 1), np.minimum(i + 1, rows - 1)
    upper = (1.0 - (u - j)) * grey[i, j] + (u - j) * grey[i, right]
    lower = (1.0 - (u - j)) * grey[below, j] + (u - j) * grey[below, right]
    return np.asarray((1.0 - (v - i)) * upper + (v - i) * lower)


def _averaged(grey: Floats, border: float, pitch: float) -> Floats:
    """Average an image along its rows over the diagonal width of a border, replicating the edge pixels."""
    count = max(math.ceil(math.sqrt(2.0) * border / pitch - 1e-9), 1)
    shifts = np.arange(count) - (count - 1) // 2
    places = np.arange(grey.shape[1])
    total = np.zeros_like(grey)
    for shift in shifts:
        total += grey[:, np.clip(places + shift, 0, grey.shape[1] - 1)]
    return np.asarray(total / count)
