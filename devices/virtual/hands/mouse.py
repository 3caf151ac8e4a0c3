"""Mouse as a hand: the live view publishes its position 60 times a second; a filter smooths it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from devices.common.settings import Workspace
from devices.virtual.hands.hand import HAND_FIELDS, TREMOR_FIELDS, CompiledHand, GripSettings, fill_tremor
from haptics.errors import ConfigurationError
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
        ("lock", "<i8"),
        ("shown", "<i8"),
        ("rate", "<f8"),
        ("workspace_min", "<f8", (2,)),
        ("workspace_max", "<f8", (2,)),
        ("time", "<f8"),
        ("version", "<i8"),
        ("wanted", "<f8", (2,)),
        ("velocity", "<f8", (2,)),
        ("engaged", "<i8"),
        ("clicked", "<i8"),
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

    def build(self, seed: int, workspace: Workspace) -> MouseHand:
        """Map the file of the view; `seed` determines the tremor."""
        return MouseHand(self, seed, workspace)


class MouseHand(CompiledHand):
    """Hand that follows the mouse, created by `MouseSettings.build`."""

    def __init__(self, settings: MouseSettings, seed: int, workspace: Workspace) -> None:
        self.stiffness, self.damping = settings.stiffness, settings.damping
        self.start = workspace.centre
        self._lane = Mailbox(Path(settings.target), HAND_TARGET)
        record = np.zeros(1, MOUSE)
        record["lock"], record["shown"] = self._lane.addresses
        record["rate"] = 1.0 / settings.smoothing
        record["workspace_min"], record["workspace_max"] = workspace
        fill_tremor(record, settings.tremor, seed)
        super().__init__(record, settings.presses)
        self.restart()

    @property
    def _part(self) -> Callable[..., None]:
        from devices.virtual.hands.kernels import mouse

        return mouse

    def restart(self) -> None:
        """Reset the hand to time zero, with the handle released."""
        record = self._record
        record["time"], record["version"] = 0.0, -1
        record["engaged"] = record["clicked"] = 0
        record["ease"] = 0.0
        record["wanted"] = record["target"] = self.start
        record["velocity"] = 0.0
