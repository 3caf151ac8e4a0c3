"""Programs of a rendering (element, element on a scene, motion) and their journal entries.

The journal of a recording contains every program with its number. A change of parameters keeps the number; a new
program gets the next number and starts from its initial state. The table of a motion is a separate file in the
recording.
"""

from __future__ import annotations

import functools
import hashlib
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.device import Causality
from haptics.elements.catalogue import FOUR_MODELS
from haptics.elements.kernels import ELEMENT, PARAMETERS
from haptics.elements.models import Element
from haptics.elements.tables import make_element
from haptics.errors import ConfigurationError, RecordingError
from haptics.jit import address_of_part
from haptics.rendering.kernels import CORE, MODEL_MOTION, TABLE_COLUMNS, step_motion
from haptics.rendering.walls import project_proxy, push_handle, push_mass
from haptics.scenes.kernels import look_up
from haptics.scenes.scene import Scene, fitted, require_solvable, scene_record
from haptics.scenes.tables import scene_from_table
from haptics.scenes.walls import PackedWalls
from haptics.settings import bounded, build, check, documented

# --- motions ----------------------------------------------------------------------------------------------------------
#
# A motion drives a device along a reference, for calibration, homing and guidance. It stops at the end of its
# reference and stays there.
#
# An impedance device is pulled to the reference by a PID controller (spring, damper and slow integrator) plus a
# feedforward force per row of the reference. An admittance device is commanded the velocity that takes its reference
# to the next point.
#
# A motion injects energy deliberately, so the energy limit for passive elements does not apply. It has other bounds:
# on its force or the speed of its reference, on the following error, and on speeds that last longer than
# `haptics.rendering.kernels.OVERSPEED_TIME`. If one of the last two is exceeded, the output becomes the safe output
# and the run ends. The dead-man's switch and all limits of the device apply as for any program. While the output is
# not fully applied (fades, a gate, a transition from another force, a released dead-man's switch, untrusted samples),
# the reference waits. After missed deadlines, the reference of an impedance device follows the elapsed time, since
# the handle continued to move.

Table = NDArray[np.float64]

MAX_ROWS = 2_000_000
"""Maximum number of rows of a reference: half an hour at 1 kHz."""


@documented
@dataclass(frozen=True, eq=False)
class Motion:
    """A reference with its controller gains and bounds.

    Attributes
    ----------
    causality : Causality
        Causality of the device.
    table : (n, 6) float array
        Reference with one row per period: position [m], velocity [m/s] and feedforward force [N] (velocity and force
        for impedance devices only); see `reference`. After the last row its position is held with zero velocity.
    relative : bool
        Whether positions are relative to the initial position of the end effector (impedance) or its reference
        (admittance).
    contact : bool
        Whether the following error is the integral of the velocity error, as in a sticking element, instead of the
        position error.
    label : str
        Description of the motion in the recording.

    Raises
    ------
    ConfigurationError
        If a value is not allowed.
    """

    model: ClassVar[str] = "motion"
    causality: Causality
    table: Table
    bound: float = bounded(
        above=0.0, unit="N or m/s", doc="norm of its own force (impedance), speed of its reference (admittance)"
    )
    max_error: float = bounded(
        1.0, above=0.0, unit="m", doc="following error beyond which the end effector counts as not following"
    )
    max_speed: float = bounded(10.0, above=0.0, unit="m/s", doc="speed beyond which the device counts as running away")
    relative: bool = False
    stiffness: float = bounded(0.0, minimum=0.0, unit="N/m", doc="force per position error (impedance)")
    damping: float = bounded(0.0, minimum=0.0, unit="N s/m", doc="force per velocity error (impedance)")
    integration: float = bounded(
        0.0,
        minimum=0.0,
        unit="N/(m s)",
        doc="gain of the integral of the error (impedance); above 0 the force starts from its previous value",
    )
    contact: bool = False
    trip: float = bounded(
        0.0, minimum=0.0, unit="m", doc="following error beyond which the rest phase begins; 0: never"
    )
    rest: float = bounded(
        0.0, minimum=0.0, unit="s", doc="duration of the rest phase at the end; the gains below apply from its start on"
    )
    rest_stiffness: float = bounded(0.0, minimum=0.0, unit="N/m", doc="stiffness in the rest phase")
    rest_damping: float = bounded(0.0, minimum=0.0, unit="N s/m", doc="damping in the rest phase")
    period: float = bounded(1e-3, above=0.0, maximum=1.0, unit="s", doc="time between two rows")
    label: str = ""

    def __post_init__(self) -> None:
        check(self, "motion")
        table = np.ascontiguousarray(self.table, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != TABLE_COLUMNS or not 1 <= len(table) <= MAX_ROWS:
            raise ConfigurationError(
                f"motion.table has the shape {table.shape}: must be of (n, {TABLE_COLUMNS}), with 1 to {MAX_ROWS} rows."
            )
        if not np.isfinite(table).all():
            raise ConfigurationError("motion.table: has values that are not finite numbers.")
        object.__setattr__(self, "table", table)  # the dataclass is frozen

    @property
    def duration(self) -> float:
        """Duration without waiting [s]."""
        return len(self.table) * self.period

    @property
    def facts(self) -> dict[str, Any]:
        """Attributes for the journal of a recording, without table and period."""
        left_out = {"table", "period", "causality"}
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name not in left_out}

    def fill(self, record: NDArray[Any]) -> None:
        """Write the parameters into a (1,) `record` with the fields of `PARAMETERS`.

        The motion must outlive the record, which contains the address of its table.
        """
        record["step"] = address_of_part(step_motion, CORE)
        record["model"] = MODEL_MOTION
        for name in ("stiffness", "damping", "period"):
            record[name] = getattr(self, name)
        own = record["motion"]
        own["resting"] = round(self.rest / self.period)
        own["table"], own["rows"] = self.table.ctypes.data, len(self.table)
        for name in (
            *("relative", "integration", "bound", "max_error", "max_speed"),
            *("contact", "trip", "rest_stiffness", "rest_damping"),
        ):
            own[name] = getattr(self, name)

    def copy_record(self) -> NDArray[Any]:
        """Return a kernel record, (1,) of dtype `ELEMENT`, in the initial state."""
        record = np.zeros(1, ELEMENT)
        self.fill(record)
        return record


def reference(
    position: ArrayLike, velocity: ArrayLike | None = None, force: ArrayLike | None = None, *, period: float = 1e-3
) -> Table:
    """Return the table of a reference, shape (n, 6).

    Parameters
    ----------
    position : (n, 2) array
        Position at each tick [m].
    velocity : (n, 2) array, optional
        Velocity at each tick [m/s]; by default the backward difference of the positions.
    force : (n, 2) array, optional
        Feedforward force [N]; zero by default.
    period : float
        Time between two rows [s].
    """
    places = np.asarray(position, dtype=np.float64)
    table = np.zeros((len(places), TABLE_COLUMNS))
    table[:, 0:2] = places
    table[:, 2:4] = np.diff(places, axis=0, prepend=places[:1]) / period if velocity is None else velocity
    if force is not None:
        table[:, 4:6] = force
    return table


def constant_reference(duration: float, period: float = 1e-3) -> Table:
    """Return the table of a constant reference that lasts `duration` [s], for a relative motion."""
    return np.zeros((max(math.ceil(duration / period), 1), TABLE_COLUMNS))


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
                f"law {self.element.law}: an element on a scene must have the law of its background, {self.scene.law}."
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
        self.element.fill(record)
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
    program.fill(record)
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
    path = folder / table_name(int(entry["program"]))
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError("too large")
        data = path.read_bytes()
        table: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise RecordingError(f"{path}: the reference of a motion cannot be read ({error}).") from error
    if hashlib.sha256(data).hexdigest() != str(entry["table_sha256"]):
        raise RecordingError(f"{path}: is not the reference that was followed: its SHA-256 is another.")
    return build(Motion, {**entry["motion"], "table": table, "causality": causality, "period": period}, "motion")
