"""Programs of a rendering (element, element on a scene, motion) and their journal entries.

The journal of a recording contains every program with its number. A change of parameters keeps the number; a new
program gets the next number and starts from its initial state. The table of a motion is a separate file in the
recording.
"""

from __future__ import annotations

import functools
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality
from haptics.elements.catalogue import FOUR_MODELS
from haptics.elements.kernels import ELEMENT, PARAMETERS
from haptics.elements.models import Element, write_parameters, write_step
from haptics.elements.tables import make_element
from haptics.errors import ConfigurationError, RecordingError
from haptics.parts import address_of_part
from haptics.rendering.kernels import CORE, TABLE_COLUMNS
from haptics.rendering.motion import MAX_ROWS, Motion
from haptics.rendering.walls import project_proxy, push_handle, push_mass
from haptics.scenes.kernels import look_up
from haptics.scenes.record import scene_record
from haptics.scenes.scene import Scene, fitted, require_solvable
from haptics.scenes.tables import scene_from_table
from haptics.scenes.walls import PackedWalls
from haptics.settings import build

# --- elements on scenes -----------------------------------------------------------------------------------------------
#
# Elements on scenes: programs whose law parameters depend on the position of the proxy.
#
# At the start of every tick, the parameters are looked up in the scene at the position of the proxy at the end of the
# last tick. The element's step is the same as without a scene: it dissipates energy for any parameters, so that a
# friction level that varies with position cannot drive the device.


@dataclass(frozen=True)
class SceneElement:
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
        meet = push_mass if causality is Causality.ADMITTANCE else push_handle
        places["wall_part"], places["wall_emerge"] = address_of_part(meet, CORE), address_of_part(project_proxy, CORE)


# --- programs ---------------------------------------------------------------------------------------------------------

Program = Element | SceneElement | Motion

_LARGEST = 8 * TABLE_COLUMNS * MAX_ROWS + 1000


def parameters_of(program: Program, number: int = 0) -> NDArray[Any]:
    """Return the parameters of a program as a (1,) record of dtype `PARAMETERS`.

    The record is an argument of `Rendering.configure`. For a motion or a scene it contains the address of a table, so
    it is valid in this process only, and the program must outlive it.
    """
    record = np.zeros(1, PARAMETERS)
    if isinstance(program, Motion | SceneElement):
        program.fill(record)
    else:
        write_parameters(program, record)
        write_step(program, record)
    record["program"] = number
    return record


# --- storage in a recording -------------------------------------------------------------------------------------------


def table_name(number: int) -> str:
    """Return the file name of the table of program `number` in a recording."""
    return f"motion_{number:04d}.npy"


def save_motion(folder: Path, motion: Motion, number: int) -> dict[str, Any]:
    """Write the table of a motion into a recording and return its journal entry, without the version.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    data = io.BytesIO()
    np.save(data, motion.table)
    with open(folder / table_name(number), "xb") as file:
        file.write(data.getbuffer())
    digest = hashlib.sha256(data.getbuffer()).hexdigest()
    return {"program": number, "model": Motion.model, "motion": motion.facts, "table_sha256": digest}


def read_program(folder: Path, entry: Mapping[str, Any], causality: Causality, period: float) -> Program:
    """Return the program of a journal entry of a recording.

    Parameters
    ----------
    folder : Path
        Folder of the recording.
    entry : mapping
        Journal entry.
    causality : Causality
        Causality of the device.
    period : float
        Time between two ticks [s].

    Raises
    ------
    RecordingError
        If the table of a motion is missing or its hash differs from the journal.
    ConfigurationError
        If a parameter is not allowed.
    """
    if entry["model"] != Motion.model:
        element = make_element(entry["model"], entry["law"], entry["element"], period, causality)
        return SceneElement(element, scene_from_table(entry["scene"])) if "scene" in entry else element
    table = _read_table(folder / table_name(int(entry["program"])), str(entry["table_sha256"]))
    return build(Motion, {**entry["motion"], "table": table, "causality": causality, "period": period}, "motion")


def _read_table(path: Path, digest: str) -> NDArray[Any]:
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError("too large")
        data = path.read_bytes()
        table: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise RecordingError(f"{path}: the reference of a motion cannot be read ({error}).") from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise RecordingError(f"{path}: is not the reference that was followed: its SHA-256 is another.")
    return table
