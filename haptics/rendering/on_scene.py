"""Elements on scenes: programs whose law parameters depend on the position of the proxy.

At the start of every tick, the parameters are looked up in the scene at the position of the proxy at the end of the
last tick. The element's step is the same as without a scene: it dissipates energy for any parameters, so that a
friction level that varies with position cannot drive the device.
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
        One of the models A to D; its law must be the law of the scene's background.
    scene : Scene
        The surface. For elements with a spring its borders are widened (`haptics.scenes.fitted`).

    Raises
    ------
    ConfigurationError
        If the model or the law of the element does not match, or condition (15) fails anywhere in the scene.
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
        """The scene with its borders widened for the element."""
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
        """Causality of the element."""
        return self.element.causality

    @property
    def period(self) -> float:
        """Time between two steps [s]."""
        return self.element.period

    def fill(self, record: NDArray[Any]) -> None:
        """Write the parameters into a (1,) `record` with the fields of `PARAMETERS`.

        The object must outlive the record, which contains the address of its scene.
        """
        write_parameters(self.element, record)
        write_step(self.element, record)
        record["scene"]["look_up"] = address_of_part(look_up, CORE)
        record["scene"]["table"] = self._table.ctypes.data

    def copy_record(self) -> NDArray[Any]:
        """Return a kernel record, (1,) of dtype `ELEMENT`, with the present state of the element."""
        record = self.element.copy_record()
        self.fill(record)
        return record.astype(ELEMENT, copy=False)


def write_walls(record: NDArray[Any], walls: PackedWalls, causality: Causality) -> None:
    """Write walls into a (1,) `record` with the fields of `PARAMETERS`; `walls` must outlive the record."""
    places = record["scene"]
    places["walls"], places["wall_count"] = walls.address, walls.count
    if walls.count:
        meet = hold_off if causality is Causality.ADMITTANCE else push
        places["wall_part"], places["wall_emerge"] = address_of_part(meet, CORE), address_of_part(emerge, CORE)
