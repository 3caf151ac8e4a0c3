"""Elements on scenes: programs whose law has its numbers from the place of the proxy.

At the beginning of every tick the scene is looked up where the proxy was at the end of the last one, and the law of
this tick has the numbers that were found there. The element's own step is what it is without a scene: it takes energy
out of the contact whatever the numbers are, so that a level that changes from place to place cannot drive anything.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality
from haptics.elements.catalogue import FOUR_MODELS
from haptics.elements.kernels import ELEMENT
from haptics.elements.models import Element, write_parameters, write_step
from haptics.errors import ConfigurationError
from haptics.parts import address_of_part
from haptics.rendering.kernels import CORE
from haptics.rendering.wall_contacts import emerge, push
from haptics.rendering.wall_masses import hold_off
from haptics.scenes.condition import fitted, require_solvable
from haptics.scenes.kernels import look_up
from haptics.scenes.record import scene_record
from haptics.scenes.scene import Scene
from haptics.scenes.walls import PackedWalls


@dataclass(frozen=True)
class OnScene:
    """An element whose proxy slides on a scene.

    Attributes
    ----------
    element : Element
        One of the models A to D; its law is that of the scene's background.
    scene : Scene
        The surface. In front of a spring its borders are wider (`haptics.scenes.fitted`).

    Raises
    ------
    ConfigurationError
        If it is another element, has another law, or condition (15) fails anywhere in the scene.
    """

    element: Element
    scene: Scene

    def __post_init__(self) -> None:
        if self.element.model not in FOUR_MODELS:
            raise ConfigurationError(
                f"model {self.element.model}: cannot be put on a scene; use one of {', '.join(FOUR_MODELS)}."
            )
        if self.element.law != self.scene.law:
            raise ConfigurationError(
                f"law {self.element.law}: the law of an element on a scene is that of its background, {self.scene.law}."
            )
        require_solvable(self.surface, self.element.mobility)

    @functools.cached_property
    def surface(self) -> Scene:
        """The scene with its borders as wide as they are here."""
        return fitted(self.scene, self.element)

    @functools.cached_property
    def _table(self) -> NDArray[np.float64]:
        return scene_record(self.surface)

    @property
    def model(self) -> str:
        """Name of the element's model."""
        return self.element.model

    @property
    def causality(self) -> Causality:
        """What the element takes and gives."""
        return self.element.causality

    @property
    def period(self) -> float:
        """Time between two steps [s]."""
        return self.element.period

    def fill(self, record: NDArray[Any]) -> None:
        """Write what it is into a (1,) `record` that has the fields of `PARAMETERS`; it must live as long as that."""
        write_parameters(self.element, record)
        write_step(self.element, record)
        record["scene"]["look_up"] = address_of_part(look_up, CORE)
        record["scene"]["table"] = self._table.ctypes.data

    def copy_record(self) -> NDArray[Any]:
        """Return a kernel record, (1,) of dtype `ELEMENT`: what it is, and the present state of the element."""
        record = self.element.copy_record()
        self.fill(record)
        return record.astype(ELEMENT, copy=False)


def write_walls(record: NDArray[Any], walls: PackedWalls, causality: Causality) -> None:
    """Write walls into a (1,) `record` that has the fields of `PARAMETERS`; they must live as long as it is used."""
    places = record["scene"]
    places["walls"], places["wall_count"] = walls.address, walls.count
    if walls.count:
        meet = hold_off if causality is Causality.ADMITTANCE else push
        places["wall_part"], places["wall_emerge"] = address_of_part(meet, CORE), address_of_part(emerge, CORE)
