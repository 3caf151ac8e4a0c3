"""Mouse as a hand: the live view publishes its position 60 times a second; a filter smooths it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from devices.common.settings import Workspace
from devices.virtual.hands.hand import CompiledHand, GripSettings
from devices.virtual.hands.records import HAND_FIELDS, TREMOR_FIELDS
from haptics.errors import ConfigurationError
from haptics.records import fields
from haptics.settings import bounded, documented, string
from haptics.shared import Mailbox

HAND_TARGET = np.dtype([("position", "<f8", (2,)), ("engaged", "<i8"), ("buttons", "<i8"), ("ease", "<f8")])
"""Record published by the view.

It contains the position of the mouse in the plane [m], 1 while the mouse holds the handle, else 0, the pressed buttons
of the device (`devices.virtual.hands.hand.HandSample`), independent of the grip, and the looseness of the grip from 0
to 1, by default 0 (firm).
"""

MOUSE = np.dtype(
    [
        *HAND_FIELDS,
        *TREMOR_FIELDS,
        *fields("<i8", "lock shown"),
        ("rate", "<f8"),
        *fields("<f8", "workspace_min workspace_max", 2),
        ("time", "<f8"),
        ("version", "<i8"),
        *fields("<f8", "wanted velocity", 2),
        *fields("<i8", "engaged clicked"),
        ("ease", "<f8"),
    ]
)
"""Record of the hand.

It contains the addresses of lock and record of the lane, the `rate` of the filter [1/s] and the workspace [m], followed
by the time [s] and the state of the mouse at the last sample, and the velocity of the filter [m/s], whose position is
the target.
"""


@documented
@dataclass(frozen=True)
class MouseSettings(GripSettings):
    """Settings of the hand "mouse"."""

    target: str = string(
        "", allowed="a file", doc="mailbox with the mouse position of the live view; set by the session"
    )
    smoothing: float = bounded(
        0.03, minimum=0.001, maximum=1.0, unit="s", doc="time constant of both poles of the mouse filter"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.target:
            raise ConfigurationError("the hand mouse needs the live view, which was not started: choose another hand.")

    def build(self, seed: int, workspace: Workspace) -> CompiledHand:
        """Map the file of the view; `seed` determines the tremor. The handle is released at first."""
        lane = Mailbox(Path(self.target), HAND_TARGET)
        record = np.zeros(1, MOUSE)
        record["lock"], record["shown"] = lane.addresses
        record["rate"], record["version"] = 1.0 / self.smoothing, -1
        record["workspace_min"], record["workspace_max"] = workspace
        record["wanted"] = record["target"] = workspace.centre
        return CompiledHand("mouse", record, self, seed, workspace.centre, lane)
