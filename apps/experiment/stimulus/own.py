"""What a device's own friction leaves of itself to the hand: its identified model, less what was compensated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.common.compensation import CompensationSettings
from devices.common.friction_file import OwnFriction, read_own_friction
from haptics.errors import ConfigurationError
from haptics.reading import sha256_of
from haptics.records import Rows

FILE = "own_friction.toml"
"""In the folder of a session: the friction of the device that was known, or measured, when it began."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Residual:
    """The friction of a device, and how much of it was compensated.

    Attributes
    ----------
    friction : OwnFriction
        As it was identified.
    share : float
        Compensated part, 0 to 1.
    """

    friction: OwnFriction
    share: float

    @property
    def doubt(self) -> float:
        """By how much the level may be another [N]."""
        return self.friction.doubt

    def force(self, rows: Rows) -> Array:
        """Return what the hand has to overcome of it at each tick, (n, 2) [N], along the motion.

        Of the friction f of an axis a share is compensated, and of the rest as much as the command brakes
        (`devices.common.compensation`): under a command that is against the motion and large enough nothing is left.
        """
        left = np.zeros((len(rows), 2))
        for axis, (forward, backward) in enumerate(self.friction.laws):
            speed, command = rows["velocity"][:, axis], rows["command"][:, axis]
            for law, sign in ((forward, 1.0), (backward, -1.0)):
                moving = sign * speed > 0.0
                level = levels(law, np.abs(speed[moving]))
                against = np.maximum(-sign * command[moving], 0.0)
                left[moving, axis] = sign * (level - np.minimum(level, self.share * level + against))
        return left


def levels(law: Any, speed: Array) -> Array:
    """Return the friction of a law at these speeds [N]."""
    forces: Array = np.asarray(law(np.column_stack((speed, np.zeros_like(speed)))))
    return np.asarray(forces[:, 0])


def residual_of(recording: Path, metadata: dict[str, Any]) -> Residual | None:
    """Return what is known of the own friction that a block was run with; None if nothing is.

    It is the file that the recording names by its hash: the one kept in the session's folder, or where it was.
    """
    wanted = metadata.get("friction_file_hash")
    device = metadata.get("configuration", {}).get("device", {})
    named = device.get("friction_parameters")
    if not wanted or not isinstance(named, str):
        return None
    for file in (recording.parent.parent / FILE, Path(named)):
        try:
            if sha256_of(file, str(file)) == wanted:
                own = read_own_friction(str(file), metadata["device"]["name"])
                return Residual(own, float(device.get("compensation", CompensationSettings().compensation)))
        except ConfigurationError:
            continue
    return None
