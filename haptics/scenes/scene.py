"""Scenes: a background and regions on it, in which one friction law has different numbers.

Later regions cover earlier ones. Near the outline of a region, its numbers have the weight

``w = 3 t^2 - 2 t^3``, ``t = 1/2 - d / (1.5 border)`` between 0 and 1,

at the signed distance ``d``; at the outline itself it is 1/2. The slope of the weight is continuous and at most
1/border. When the contact crosses the border at a speed v, the level changes per tick by at most its total difference
times ``v T / border``.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.device import Causality
from haptics.elements.models import STEADIER, Element
from haptics.elements.tables import CLOSED_FORM_SUFFIX, LAWS
from haptics.errors import ConfigurationError
from haptics.friction import kernels as law_kernels
from haptics.friction.laws import ClosedForm, Law
from haptics.scenes.kernels import CIRCLE, GRATING, HALF_PLANE, HEAD, NOISE, POLYGON, REGION
from haptics.scenes.shapes import (
    MAX_COORDINATE,
    Box,
    Circle,
    Floats,
    HalfPlane,
    ImageMap,
    Polygon,
    Shape,
    Texture,
    as_points,
    noise_tile,
)
from haptics.scenes.walls import MAX_WALLS, Wall
from haptics.settings import bounded, check, choice, documented, string

# --- families of laws -------------------------------------------------------------------------------------------------


def numbers_of(law: Law) -> Floats:
    """Return the numbers of a law, (`LAW_NUMBERS`,), with 0 in place of the mobility limit."""
    numbers = np.array(law.record["numbers"][0])
    numbers[law_kernels.LAW_NUMBERS - 1] = 0.0
    return numbers


def exact(law: Law) -> Law:
    """Return the law that a closed form approximates, or the law itself."""
    return law.law if isinstance(law, ClosedForm) else law


def title_of(law: Law) -> str:
    """Return the name of a law in settings."""
    return f"{exact(law).name}{CLOSED_FORM_SUFFIX}" if isinstance(law, ClosedForm) else law.name


# --- scenes -----------------------------------------------------------------------------------------------------------

LOOKS = ("plain", "ice", "wood", "rubber", "metal", "glass")
"""Appearance of materials in pictures, without any other effect."""

MAX_REGIONS = 64
_MAX_CORNERS = 2048  # maximum number of corners of all polygons of a scene; keeps a look-up within microseconds

_MAX_MAPS = 4  # maximum number of image maps of a scene

MAX_NAME_LENGTH = 60
_MAX_BORDER_WIDTH = 0.1  # maximum width of a border [m]

BAND = 1.5
"""Width of the band in which numbers change, in borders; the steepest slope is 1.5 times the mean."""


@documented
@dataclass(frozen=True)
class Region:
    """Part of a scene with separate numbers.

    Attributes
    ----------
    name : str
        Name for the user.
    shape : Shape
        Area of the region.
    law : Law or ImageMap
        Law of the same class as the law of the scene, or an image map for spatially varying numbers.
    texture : Texture or None
        Modulation of the level.
    """

    name: str
    shape: Shape
    law: Law | ImageMap
    look: str = choice("plain", LOOKS, doc="appearance of the region in pictures")
    texture: Texture | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "region.name")
        check(self, f"region {self.name!r}")
        wrong = [
            f"{label} = {value!r:.60}: must be {allowed}"
            for label, value, kind, allowed in (
                ("shape", self.shape, Shape, "a shape such as Circle((0.0, 0.0), 0.02)"),
                ("law", self.law, Law | ImageMap, "a friction law or an ImageMap"),
                ("texture", self.texture, Texture | None, "a Texture, or None"),
            )
            if not isinstance(value, kind)
        ]
        if wrong:
            raise ConfigurationError(f"region {self.name!r}: {wrong[0]}.")

    @property
    def laws(self) -> tuple[Law, ...]:
        """Laws between which the numbers lie: one law, or the two laws of an image map."""
        return (self.law.lower, self.law.upper) if isinstance(self.law, ImageMap) else (self.law,)

    @property
    def extremes(self) -> list[Floats]:
        """Numbers whose weighted means include all numbers in the region, including textures."""
        found = [numbers_of(law) for law in self.laws]
        if self.texture is None:
            return found
        forces = np.arange(law_kernels.LAW_NUMBERS) < exact(self.laws[0]).forces
        amplitude = self.texture.amplitude
        factors = (np.where(forces, factor, 1.0) for factor in (1.0 - amplitude, 1.0 + amplitude))
        return [numbers * factor for numbers, factor in itertools.product(found, factors)]

    def numbers_at(self, points: ArrayLike, border: float) -> Floats:
        """Return the numbers of the law well inside the region at points (n, 2): (n, `LAW_NUMBERS`)."""
        rows = as_points(points)
        numbers = np.tile(numbers_of(self.laws[0]), (len(rows), 1))
        if isinstance(self.law, ImageMap):
            numbers += self.law.share_at(rows, border)[:, None] * (numbers_of(self.law.upper) - numbers)
        if self.texture is not None:
            factors = 1.0 + self.texture.amplitude * self.texture.pattern_at(rows)
            numbers[:, : exact(self.laws[0]).forces] *= factors[:, None]
        return numbers


@documented
@dataclass(frozen=True)
class Scene:
    """A plane with a friction law whose numbers depend on the place.

    Attributes
    ----------
    law : Law
        Law of the background, whose class all regions share: a built-in law of `haptics.friction.laws`, or its
        `ClosedForm`.
    regions : tuple of Region
        Regions on the background; later ones cover earlier ones.
    walls : tuple of Wall
        Solid parts, on top of everything else.

    Raises
    ------
    ConfigurationError
        If the laws are not of one class, a name occurs twice, or the scene is too large for a look-up in every tick.
    """

    law: Law
    regions: tuple[Region, ...] = ()
    border: float = bounded(
        0.002,
        minimum=1e-4,
        maximum=_MAX_BORDER_WIDTH,
        unit="m",
        doc="width of the transition between the numbers of two regions; see the module",
    )
    walls: tuple[Wall, ...] = ()
    name: str = string("", doc="name of the scene")
    look: str = choice("plain", LOOKS, doc="appearance of the background in pictures")

    def __post_init__(self) -> None:
        check(self, "scene")
        if self.name:
            check_name(self.name, "scene.name")
        object.__setattr__(self, "regions", tuple(self.regions))
        object.__setattr__(self, "walls", tuple(self.walls))
        if not all(isinstance(region, Region) for region in self.regions):
            raise ConfigurationError("scene.regions: must be Region objects.")
        if not all(isinstance(wall, Wall) for wall in self.walls):
            raise ConfigurationError("scene.walls: must be Wall objects.")
        shapes = [region.shape for region in self.regions] + [wall.shape for wall in self.walls]
        corners = sum(len(shape.points) for shape in shapes if isinstance(shape, Polygon))
        maps = sum(isinstance(region.law, ImageMap) for region in self.regions)
        for count, most, label in (
            (len(self.regions), MAX_REGIONS, "regions"),
            (corners, _MAX_CORNERS, "corners of polygons"),
            (maps, _MAX_MAPS, "image maps"),
            (len(self.walls), MAX_WALLS, "walls"),
        ):
            if count > most:
                raise ConfigurationError(f"scene: {count} {label}; at most {most}.")
        names = [region.name for region in self.regions]
        for name in names:
            if names.count(name) > 1:
                raise ConfigurationError(f"region {name!r}: two regions have this name; names must be unique.")
        if not isinstance(self.law, Law):
            raise ConfigurationError(f"scene.law = {self.law!r:.60}: must be a friction law such as Coulomb(4.0).")
        mine = exact(self.law)
        if type(mine) not in LAWS.values():
            raise ConfigurationError(
                f"scene.law: {title_of(self.law)!r} is not a built-in law. A scene mixes the numbers of its laws, "
                f"which must remain solvable; must be one of {', '.join(LAWS)}."
            )
        laws = [(region, law) for region in self.regions for law in region.laws]
        for region, law in laws:
            other = exact(law)
            if type(law) is not type(self.law) or type(mine) is not type(other):
                raise ConfigurationError(
                    f"region {region.name!r}: its law is {title_of(law)!r}, the scene's {title_of(self.law)!r}; all "
                    "laws of a scene must be of one class."
                )
            if getattr(mine, "angle", 0.0) != getattr(other, "angle", 0.0):
                raise ConfigurationError(
                    f"region {region.name!r}: law.angle = {getattr(other, 'angle', 0.0):g} rad, the scene's is "
                    f"{getattr(mine, 'angle', 0.0):g} rad; the axes of a law cannot turn from place to place."
                )

    def with_walls(self, **numbers: float) -> Scene:
        """Return the scene with changed ``stiffness``, ``damping`` or ``friction`` of all its walls."""
        changes: dict[str, Any] = {**numbers}
        return replace(self, walls=tuple(replace(wall, **changes) for wall in self.walls))

    def with_textures(self, **numbers: float) -> Scene:
        """Return the scene with changed ``amplitude`` or ``wavelength`` of all its textures."""
        changes: dict[str, Any] = {**numbers}
        regions = (
            replace(region, texture=replace(region.texture, **changes)) if region.texture is not None else region
            for region in self.regions
        )
        return replace(self, regions=tuple(regions))

    @property
    def kind(self) -> int:
        """Kind of the law, as in kernel records."""
        return int(self.law.record["kind"][0])

    @property
    def strongest(self) -> Law:
        """Law with the largest break-away force."""
        laws = (self.law, *(law for region in self.regions for law in region.laws))
        return max(laws, key=lambda law: law.breakaway_force)

    def numbers_at(self, points: ArrayLike) -> Floats:
        """Return the numbers of the law at points.

        Parameters
        ----------
        points : (n, 2) array
            Places in the plane [m].

        Returns
        -------
        (n, `LAW_NUMBERS`) float array
            Numbers as in the record of a law: the break-away force first, the mobility limit of the whole scene last.
        """
        rows = as_points(points)
        numbers = np.tile(numbers_of(self.law), (len(rows), 1))
        for region in self.regions:
            weight = blend(region.shape.distance(rows), self.border)[:, None]
            own = region.numbers_at(rows, self.border)
            numbers = np.where(weight >= 1.0, own, numbers + weight * (own - numbers))
        numbers[:, law_kernels.LAW_NUMBERS - 1] = mobility_limit(self)
        return numbers

    def force_at(self, points: ArrayLike, velocity: ArrayLike) -> Floats:
        """Return the friction force of the law at points, (n, 2) [N], without the friction of walls.

        `points` are (n, 2) [m], and `velocity` contains the sliding velocities, (n, 2) [m/s].
        """
        rows, numbers = as_points(velocity), self.numbers_at(points)
        laws: NDArray[Any] = np.zeros(len(rows), law_kernels.LAW)
        laws["kind"], laws["numbers"] = self.kind, numbers
        result = np.empty_like(rows)
        law_kernels.plane_forces(laws, rows, 0.0, result)
        return result


def blend(distance: ArrayLike, border: float) -> Floats:
    """Return the weight, 0 to 1, of the numbers of a region at signed distances [m] from its outline."""
    share = np.clip(0.5 - np.asarray(distance, dtype=np.float64) / (BAND * border), 0.0, 1.0)
    return np.asarray(share * share * (3.0 - 2.0 * share))


def check_name(name: Any, label: str) -> None:
    """Raise `ConfigurationError` unless a name is short, printable text."""
    if not isinstance(name, str) or not name or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise ConfigurationError(f"{label} = {name!r:.80}: must be 1 to {MAX_NAME_LENGTH} printable characters.")


EVERYWHERE = ((-MAX_COORDINATE, -MAX_COORDINATE), (MAX_COORDINATE, MAX_COORDINATE))
"""Box that contains every bounded shape [m]."""


# --- condition (15) ---------------------------------------------------------------------------------------------------
#
# Condition (15) for a scene: every mixture of laws in borders, images and textures must be solvable.
#
# All numbers in a scene are weighted means of the numbers of some laws: the laws of the materials that meet there, at
# both ends of the scale of an image and at both amplitudes of a texture. The steepest fall of a law with speed is
# :math:`c (F_s - F_c)/v_s - D`, and the law is solvable for mobilities below the inverse (condition (15) of Kikuuwe et
# al. 2006). As a function of the weights :math:`\lambda` the fall is a ratio of two linear functions minus a linear
# function. For more than two laws there is a direction of the weights that keeps the mean of :math:`v_s` constant, and
# along it the fall is linear. Its maximum is therefore not in the interior, but where one law fewer contributes. By
# induction the maximum is between two laws, where it has a closed form. All pairs that can meet are tested.

RINGING = 1.5
"""Factor on the width of borders for model B, whose mass overshoots, and the force with it."""

Slope = tuple[float, str]
"""Steepest fall of a law [N s/m], and a description of its place."""


def mobility_limit(scene: Scene) -> float:
    """Return the supremum of the mobilities [m/(N s)] for which all mixtures in a scene are solvable."""
    fall, _ = steepest(scene)
    return 1.0 / fall if fall > 0.0 else math.inf


def require_solvable(scene: Scene, mobility: float) -> None:
    """Raise `ConfigurationError` unless condition (15) holds in the whole scene at a `mobility` [m/(N s)]."""
    fall, where = steepest(scene)
    if fall * mobility >= 1.0:
        raise ConfigurationError(
            f"scene {scene.name!r}: {where} the law falls by {fall:.4g} N s/m, too steeply for this element: its "
            f"mobility is {mobility:.4g} m/(N s) and must be less than {1.0 / fall:.4g} (condition 15); choose laws "
            f"that fall more gently or {STEADIER}."
        )


def steepest(scene: Scene) -> Slope:
    """Return the steepest fall [N s/m] of all mixtures in a scene, at least 0, and its place."""
    steepness = scene.law.steepness
    if steepness == 0.0:
        return 0.0, "nowhere"
    places = _places(scene)
    worst: Slope = (0.0, "nowhere")
    for name, extremes, _ in places:
        for one, other in itertools.combinations_with_replacement(extremes, 2):
            worst = max(worst, (_fall(one, other, steepness), f"in {name}"), key=lambda fall: fall[0])
    for (name, extremes, box), (other_name, others, other_box) in itertools.combinations(places, 2):
        band = BAND * scene.border  # the bands around the contents of two boxes can overlap
        if any(box[0][k] - band > other_box[1][k] or other_box[0][k] - band > box[1][k] for k in range(2)):
            continue
        for one, other in itertools.product(extremes, others):
            where = f"between {name} and {other_name}"
            worst = max(worst, (_fall(one, other, steepness), where), key=lambda fall: fall[0])
    return worst


def _places(scene: Scene) -> list[tuple[str, list[Floats], Box]]:
    """Return name, extreme numbers and box of the background and the regions."""
    found = [("the background", [numbers_of(scene.law)], EVERYWHERE)]
    found += [(f"region {one.name!r}", one.extremes, one.shape.bounds) for one in scene.regions]
    return found


def _fall(one: Floats, other: Floats, steepness: float) -> float:
    """Return the steepest fall [N s/m] of all mixtures of two laws, given by their numbers.

    The fall is (a + b w)/(c + d w) - (D + e w) for w from 0 to 1. An extremum inside this interval is only possible
    where (c + d w)^2 = (b c - a d)/e.
    """
    a, c, D = steepness * (one[0] - one[1]), one[2], one[3]
    b, d, e = steepness * (other[0] - other[1]) - a, other[2] - c, other[3] - D
    shares = [0.0, 1.0]
    if e != 0.0 and d != 0.0 and (b * c - a * d) / e > 0.0:
        inside = (math.sqrt((b * c - a * d) / e) - c) / d
        shares += [inside] if 0.0 < inside < 1.0 else []
    return float(max((a + b * w) / (c + d * w) - D - e * w for w in shares))


def spread(scene: Scene) -> float:
    """Return the largest difference of a force of the law between two places of a scene [N]."""
    count = exact(scene.law).forces
    forces = np.array([numbers[:count] for _, extremes, _ in _places(scene) for numbers in extremes])
    return float((forces.max(axis=0) - forces.min(axis=0)).max())


def fitted(scene: Scene, element: Element) -> Scene:
    """Return the scene with the border width for an element; elements A and D keep the border unchanged.

    Models B and C pull the proxy with a spring K. Where the level falls by s [N/m], the spring relaxes and the proxy
    runs ahead of the hand, at ``K/(K - s)`` of its speed; with a slope ``s > K`` it would jump. A border that is wider
    by the difference of forces divided by K has ``s = S K/(K + S)`` instead of ``S = dF/border``. The force then
    changes per distance of the *hand* as it would change per distance of the proxy without a spring. The mass of model
    B oscillates on that spring; `RINGING` adds margin for it.
    """
    stiffness = element.coupling_stiffness
    if element.causality is not Causality.IMPEDANCE or stiffness == 0.0:
        return scene
    wider = scene.border + spread(scene) / stiffness
    return replace(scene, border=min(RINGING * wider if element.model == "B" else wider, _MAX_BORDER_WIDTH))


# --- memory block for the kernels -------------------------------------------------------------------------------------


def scene_record(scene: Scene) -> NDArray[np.float64]:
    """Return the memory block of a scene for the kernel, (n,) 8-byte words.

    The caller must keep the array alive while its address is in use.
    """
    head: NDArray[Any] = np.zeros(1, HEAD)
    regions: NDArray[Any] = np.zeros(len(scene.regions), REGION)
    head["regions"], head["forces"] = len(regions), exact(scene.law).forces
    head["band"], head["limit"] = BAND * scene.border, mobility_limit(scene)
    head["numbers"] = numbers_of(scene.law)
    tables: list[Floats] = []

    def add(values: Floats) -> int:
        """Add a table after the regions and return its offset from the beginning of the scene in bytes."""
        offset = head.nbytes + regions.nbytes + sum(table.nbytes for table in tables)
        tables.append(np.ascontiguousarray(values, dtype=np.float64).ravel())
        return offset

    margin = 0.5 * BAND * scene.border
    for region, record in zip(scene.regions, regions, strict=True):
        low, high = region.shape.bounds
        record["low"], record["high"] = np.array(low) - margin, np.array(high) + margin
        match region.shape:
            case Circle(center, radius):
                record["shape"], record["point"], record["radius"] = CIRCLE, center, radius
            case HalfPlane(point, normal):
                record["shape"], record["point"], record["normal"] = HALF_PLANE, point, normal
            case Polygon(points):
                record["shape"], record["corners"] = POLYGON, len(points)
                record["corners_at"] = add(np.array(points))
        record["lower"], record["upper"] = numbers_of(region.laws[0]), numbers_of(region.laws[-1])
        if isinstance(region.law, ImageMap):
            record["rows"], record["columns"] = region.law.levels.shape
            record["corner"], record["pitch"] = region.law.corner, region.law.pitch
            record["image_at"] = add(region.law.smoothed(scene.border))
        if region.texture is not None:
            noise = region.texture.pattern == "noise"
            record["pattern"] = NOISE if noise else GRATING
            record["amplitude"], record["wave"] = region.texture.amplitude, region.texture.wave
            record["tile_at"] = add(noise_tile(region.texture.seed)) if noise else 0
    return np.concatenate((head.view(np.float64), regions.view(np.float64), *tables))
