"""Hand that only pushes: a force as a function of time, without a grip on the handle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from devices.common.settings import Workspace
from devices.virtual.hands.csv_table import read_table
from devices.virtual.hands.hand import CompiledHand, PressingSettings, number_rows
from devices.virtual.hands.records import HAND_FIELDS, ROW
from haptics.errors import ConfigurationError
from haptics.settings import bounded, documented, string, unrestricted

FORCE_NAMES = (("fx", "fy"), ("force_x", "force_y"), ("fx_n", "fy_n"), ("force_x_n", "force_y_n"))
"""Accepted column names of the force in a file [N]."""

_LARGEST_FORCE = 100.0  # maximum force of a hand on a handle [N]

SCRIPT = np.dtype([*HAND_FIELDS, ("rows", "<i8"), ("row_count", "<i8"), ("period", "<f8")])
"""Record of the hand; ``rows`` is the address of the script."""


@documented
@dataclass(frozen=True)
class ScriptedForceSettings(PressingSettings):
    """Settings of the hand "scripted-force"."""

    script: Any = unrestricted(
        (),
        "rows of [time, fx, fy] in s and N",
        doc="force against time, linear between the rows, held before and after them",
    )
    file: str = string("", allowed="a CSV file", doc="file that replaces the script, with columns time, fx and fy")
    repeat: float = bounded(
        0.0, minimum=0.0, maximum=1e6, unit="s", doc="period after which the script starts again; 0: it runs once"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        rows = number_rows(self.script, 3, "hand.script")
        if bool(rows) == bool(self.file):
            raise ConfigurationError(
                "the hand scripted-force needs either hand.script, rows of [time, fx, fy], or hand.file."
            )
        object.__setattr__(self, "script", rows)  # frozen; lists from a file become tuples

    def build(self, seed: int, workspace: Workspace) -> CompiledHand:
        """Read and validate the script; `seed` is not used."""
        rows, where = self.script, self.file or "hand.script"
        if self.file:
            table = read_table(self.file)
            times, forces = table.times(), table.find(*FORCE_NAMES)
            if forces is None:
                raise table.missing("the force (fx and fy, in N)")
            rows = np.column_stack((times, forces)).tolist()
        for number, row in enumerate(rows):
            if number and not row[0] > rows[number - 1][0]:
                raise ConfigurationError(f"{where}: time {row[0]:g} s does not come after {rows[number - 1][0]:g} s.")
            if not max(abs(row[1]), abs(row[2])) <= _LARGEST_FORCE:
                raise ConfigurationError(
                    f"{where}: the force at {row[0]:g} s must be at most {_LARGEST_FORCE:g} N in each direction."
                )
        script = np.array([(time, (x, y)) for time, x, y in rows], ROW)
        record = np.zeros(1, SCRIPT)
        record["rows"], record["row_count"] = script.ctypes.data, len(script)
        record["period"], record["target"] = self.repeat, workspace.centre
        return CompiledHand("scripted_force", record, self, seed, workspace.centre, script)
