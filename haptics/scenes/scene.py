"""Scenes: a background and regions over it, in which one friction law has different numbers.

Later regions lie over earlier ones. Where the outline of a region is near, its numbers count with the weight

``w = 3 t^2 - 2 t^3``, ``t = 1/2 - d / (1.5 border)`` between 0 and 1,

at the signed distance ``d``; at the outline itself it is 1/2. The weight never changes faster than 1/border, and its
slope has no jump: crossing it at a speed v, the level changes in a tick by at most its whole difference times
``v T / border``.
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
"""What a material looks like in pictures; nothing else depends on it."""

MOST_REGIONS = 64
MOST_CORNERS = 2048
"""Corners that all polygons of a scene may have together, so that looking it up takes microseconds."""

MOST_MAPS = 4
"""Image maps that a scene may have."""

LONGEST_NAME = 60
WIDEST_BORDER = 0.1
"""Borders are at most so wide [m]."""

BAND = 1.5
"""How wide the band is in which numbers change, in borders: the steepest slope of a cubic is 1.5 times its mean."""


@documented
@dataclass(frozen=True)
class Region:
    """A part of a scene with numbers of its own.

    Attributes
    ----------
    name : str
        What people call it.
    shape : Shape
        Where it is.
    law : Law or ImageMap
        Its law, of the class that the scene's law has; or an image that says where which numbers are.
    texture : Texture or None
        How its level is modulated.
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
        """The laws that its numbers lie between: one, or the two of an image."""
        return (self.law.lower, self.law.upper) if isinstance(self.law, ImageMap) else (self.law,)

    @property
    def extremes(self) -> list[Floats]:
        """Numbers of laws between which all numbers lie that can be found in the region, textures included."""
        found = [numbers_of(law) for law in self.laws]
        if self.texture is None:
            return found
        slots = forces_of(self.laws[0])
        share = self.texture.amplitude
        return [_scaled(numbers, slots, factor) for numbers in found for factor in (1.0 - share, 1.0 + share)]

    def numbers_at(self, points: ArrayLike, border: float) -> Floats:
        """Return the numbers of the law as they are well inside the region, (n, `LAW_NUMBERS`), at (n, 2) points."""
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
        The law of the background, whose class all regions share: one of `haptics.friction.laws`,
        `haptics.friction.anisotropy` or `ClosedForm`.
    regions : tuple of Region
        What lies over the background; later ones lie over earlier ones.
    walls : tuple of Wall
        Solid parts, over everything else.

    Raises
    ------
    ConfigurationError
        If the laws are not of one class, a name comes twice, or it is larger than a tick can look up.
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
        """Raise unless a region's law can be blended with the background's."""
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
        """Return the scene with other numbers of all its walls: ``stiffness``, ``damping``, ``friction``."""
        changes: dict[str, Any] = {**numbers}
        return replace(self, walls=tuple(replace(wall, **changes) for wall in self.walls))

    @property
    def kind(self) -> int:
        """Which law it is, as kernels know it."""
        return int(self.law.record["kind"][0])

    @property
    def strongest(self) -> Law:
        """The law that breaks away at the largest force of all."""
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
            As a law's record has them: the break-away force first, the mobility limit of the whole scene last.
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
        """Return the friction force of the law at points, (n, 2) [m], sliding at velocities, (n, 2) [m/s]: (n, 2) [N].

        That of walls is not in it.
        """
        rows, numbers = as_points(velocity), self.numbers_at(points)
        laws: NDArray[Any] = np.zeros(len(rows), LAW)
        laws["kind"], laws["numbers"] = self.kind, numbers
        result = np.empty_like(rows)
        plane_forces(laws, rows, 0.0, result)
        return result

    def region_at(self, points: ArrayLike) -> NDArray[np.int64]:
        """Return the region that points, (n, 2) [m], lie in: an (n,) array; 0 is the background."""
        rows = as_points(points)
        found = np.zeros(len(rows), np.int64)
        for number, region in enumerate(self.regions, 1):
            found[region.shape.distance(rows) < 0.0] = number
        return found


def blend(distance: ArrayLike, border: float) -> Floats:
    """Return the weight of a region's numbers at signed distances [m] from its outline, 0 to 1."""
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
"""The box that every shape with an end lies in [m]."""
