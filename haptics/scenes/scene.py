"""Scenes: a background and regions on it, in which one friction law has different numbers.

Later regions cover earlier ones. Near the outline of a region, its numbers have the weight

``w = 3 t^2 - 2 t^3``, ``t = 1/2 - d / (1.5 border)`` between 0 and 1,

at the signed distance ``d``; at the outline itself it is 1/2. The slope of the weight is continuous and at most
1/border. When the contact crosses the border at a speed v, the level changes per tick by at most its total difference
times ``v T / border``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.errors import ConfigurationError
from haptics.friction.kernels import plane_forces
from haptics.friction.law import Law
from haptics.friction.sliding_kernels import LAW, LAW_NUMBERS
from haptics.scenes.family import exact, forces_of, numbers_of, require_family, title_of
from haptics.scenes.image_map import ImageMap
from haptics.scenes.shapes import FARTHEST, Floats, Polygon, Shape, as_points
from haptics.scenes.texture import Texture
from haptics.scenes.walls import MOST_WALLS, Wall
from haptics.settings import bounded, check, choice, documented, string

LOOKS = ("plain", "ice", "wood", "rubber", "metal", "glass")
"""Appearance of materials in pictures, without any other effect."""

MOST_REGIONS = 64
MOST_CORNERS = 2048
"""Maximum number of corners of all polygons of a scene; keeps a look-up within microseconds."""

MOST_MAPS = 4
"""Maximum number of image maps of a scene."""

LONGEST_NAME = 60
WIDEST_BORDER = 0.1
"""Maximum width of a border [m]."""

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
    look: str = choice("plain", LOOKS, doc="what the region looks like in pictures")
    texture: Texture | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "region.name")
        check(self, f"region {self.name!r}")
        wrong = [
            f"{what} = {value!r:.60}: must be {allowed}"
            for what, value, kind, allowed in (
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
        slots = forces_of(self.laws[0])
        share = self.texture.amplitude
        return [_scaled(numbers, slots, factor) for numbers in found for factor in (1.0 - share, 1.0 + share)]

    def numbers_at(self, points: ArrayLike, border: float) -> Floats:
        """Return the numbers of the law well inside the region at points (n, 2): (n, `LAW_NUMBERS`)."""
        rows = as_points(points)
        numbers = np.tile(numbers_of(self.laws[0]), (len(rows), 1))
        if isinstance(self.law, ImageMap):
            numbers += self.law.share_at(rows, border)[:, None] * (numbers_of(self.law.upper) - numbers)
        if self.texture is not None:
            numbers[:, list(forces_of(self.laws[0]))] *= self.texture.factor_at(rows)[:, None]
        return numbers


@documented
@dataclass(frozen=True)
class Scene:
    """A plane with a friction law whose numbers depend on the place.

    Attributes
    ----------
    law : Law
        Law of the background, whose class all regions share: from `haptics.friction.laws`,
        `haptics.friction.anisotropy` or `ClosedForm`.
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
        maximum=WIDEST_BORDER,
        unit="m",
        doc="way within which numbers go over into each other; see the module",
    )
    walls: tuple[Wall, ...] = ()
    name: str = string("", doc="what people call the scene")
    look: str = choice("plain", LOOKS, doc="what the background looks like in pictures")

    def __post_init__(self) -> None:
        check(self, "scene")
        if self.name:
            check_name(self.name, "scene.name")
        object.__setattr__(self, "regions", tuple(self.regions))
        object.__setattr__(self, "walls", tuple(self.walls))
        self._check_sizes()
        require_family(self.law)
        for region in self.regions:
            for law in region.laws:
                self._require_kin(region, law)

    def _check_sizes(self) -> None:
        if not all(isinstance(region, Region) for region in self.regions):
            raise ConfigurationError("scene.regions: must be Region objects.")
        if not all(isinstance(wall, Wall) for wall in self.walls):
            raise ConfigurationError("scene.walls: must be Wall objects.")
        shapes = [region.shape for region in self.regions] + [wall.shape for wall in self.walls]
        corners = sum(len(shape.points) for shape in shapes if isinstance(shape, Polygon))
        maps = sum(isinstance(region.law, ImageMap) for region in self.regions)
        for count, most, what in (
            (len(self.regions), MOST_REGIONS, "regions"),
            (corners, MOST_CORNERS, "corners of polygons"),
            (maps, MOST_MAPS, "image maps"),
            (len(self.walls), MOST_WALLS, "walls"),
        ):
            if count > most:
                raise ConfigurationError(f"scene: {count} {what}; at most {most}.")
        names = [region.name for region in self.regions]
        for name in names:
            if names.count(name) > 1:
                raise ConfigurationError(f"region {name!r}: two regions have this name; each needs one of its own.")

    def _require_kin(self, region: Region, law: Law) -> None:
        """Raise `ConfigurationError` unless the law of a region can be blended with the background's law."""
        mine, other = exact(self.law), exact(law)
        if type(law) is not type(self.law) or type(mine) is not type(other):
            raise ConfigurationError(
                f"region {region.name!r}: its law is {title_of(law)!r}, the scene's {title_of(self.law)!r}; all laws "
                "of a scene must be of one class."
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
        from haptics.scenes.condition import mobility_limit

        rows = as_points(points)
        numbers = np.tile(numbers_of(self.law), (len(rows), 1))
        for region in self.regions:
            weight = blend(region.shape.distance(rows), self.border)[:, None]
            own = region.numbers_at(rows, self.border)
            numbers = np.where(weight >= 1.0, own, numbers + weight * (own - numbers))
        numbers[:, LAW_NUMBERS - 1] = mobility_limit(self)
        return numbers

    def force_at(self, points: ArrayLike, velocity: ArrayLike) -> Floats:
        """Return the friction force of the law at points, (n, 2) [N], without the friction of walls.

        `points` are (n, 2) [m], and `velocity` contains the sliding velocities, (n, 2) [m/s].
        """
        rows, numbers = as_points(velocity), self.numbers_at(points)
        laws: NDArray[Any] = np.zeros(len(rows), LAW)
        laws["kind"], laws["numbers"] = self.kind, numbers
        result = np.empty_like(rows)
        plane_forces(laws, rows, 0.0, result)
        return result

    def region_at(self, points: ArrayLike) -> NDArray[np.int64]:
        """Return the number of the region at points (n, 2) [m]: an (n,) array; 0 is the background."""
        rows = as_points(points)
        found = np.zeros(len(rows), np.int64)
        for number, region in enumerate(self.regions, 1):
            found[region.shape.distance(rows) < 0.0] = number
        return found


def blend(distance: ArrayLike, border: float) -> Floats:
    """Return the weight, 0 to 1, of the numbers of a region at signed distances [m] from its outline."""
    share = np.clip(0.5 - np.asarray(distance, dtype=np.float64) / (BAND * border), 0.0, 1.0)
    return np.asarray(share * share * (3.0 - 2.0 * share))


def _scaled(numbers: Floats, slots: tuple[int, ...], factor: float) -> Floats:
    scaled = numbers.copy()
    scaled[list(slots)] *= factor
    return scaled


def check_name(name: Any, what: str) -> None:
    """Raise `ConfigurationError` unless a name is short, printable text."""
    if not isinstance(name, str) or not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise ConfigurationError(f"{what} = {name!r:.80}: must be 1 to {LONGEST_NAME} printable characters.")


EVERYWHERE = ((-FARTHEST, -FARTHEST), (FARTHEST, FARTHEST))
"""Box that contains every bounded shape [m]."""
