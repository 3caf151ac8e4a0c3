"""Arms for the tests, stepped one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.arm.mechanics.dynamics import TwoLinks
from devices.arm.mechanics.joint import Drive
from devices.arm.mechanics.plant import PLANT, new_plant, run_plant
from devices.arm.mechanics.surface import Surface

FLOATING = TwoLinks(gravity=0.0)


class Rig:
    """An arm with its drives; `rows` of a run are its states, one after each step."""

    def __init__(
        self,
        *drives: Drive,
        links: TwoLinks = FLOATING,
        start: tuple[float, float] = (0.4, 0.9),
        step: float = 1e-4,
        surface: Surface | None = None,
    ) -> None:
        self.links = links
        self.plant = np.zeros(1, PLANT)
        pair = (drives[0], drives[-1]) if drives else (Drive(), Drive())
        self.drives = new_plant(self.plant, links, pair, surface or Surface(), start)
        self.plant["step"] = step

    def run(self, commands: Any, count: int = 0) -> NDArray[Any]:
        """Step through `commands`, (n, 2), or `count` times with the same one."""
        inputs = np.array(commands, dtype=np.float64)
        if inputs.ndim == 1:
            inputs = np.tile(inputs, (count, 1))
        rows = np.zeros(len(inputs), PLANT)
        run_plant(self.plant, self.drives, inputs, rows)
        return rows

    def inertia(self) -> NDArray[np.float64]:
        """Return H of the links in the present pose, without rotors."""
        return np.asarray(self.links.terms(self.plant["angle"][0])["inertia"][0])
