"""Programs of a rendering (element, element on a scene, motion) and their journal entries.

The journal of a recording contains every program with its number. A change of parameters keeps the number; a new
program gets the next number and starts from its initial state. The table of a motion is a separate file in the
recording.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality
from haptics.elements.kernels import PARAMETERS
from haptics.elements.models import Element, write_parameters, write_step
from haptics.elements.tables import make_element
from haptics.errors import RecordingError
from haptics.rendering.motion import MOST_ROWS, Motion
from haptics.rendering.motion_kernels import WIDTH
from haptics.rendering.on_scene import OnScene
from haptics.scenes.tables import scene_from_table
from haptics.settings import build

Program = Element | OnScene | Motion

_LARGEST = 8 * WIDTH * MOST_ROWS + 1000


def parameters_of(program: Program, number: int = 0) -> NDArray[Any]:
    """Return the parameters of a program as a (1,) record of dtype `PARAMETERS`.

    The record is an argument of `Rendering.configure`. For a motion or a scene it contains the address of a table, so
    it is valid in this process only, and the program must outlive it.
    """
    record = np.zeros(1, PARAMETERS)
    if isinstance(program, Motion | OnScene):
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


def keep_motion(folder: Path, motion: Motion, number: int) -> dict[str, Any]:
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
        return OnScene(element, scene_from_table(entry["scene"])) if "scene" in entry else element
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
