"""Residual friction of a device: its identified model less the compensated part."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.common.compensation import CompensationSettings
from devices.common.friction import HandleFriction, read_own_friction
from haptics.errors import ConfigurationError
from haptics.reading import sha256_of
from haptics.records import Rows

FILE = "own_friction.toml"
"""File in the session's folder with the friction of the device at the start of the session."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Residual:
    """Friction of a device and its compensated fraction.

    Attributes
    ----------
    friction : HandleFriction
        Identified friction.
    share : float
        Compensated fraction, 0 to 1.
    """

    friction: HandleFriction
    share: float

    @property
    def doubt(self) -> float:
        """Uncertainty of the friction level [N]."""
        return self.friction.doubt

    def force(self, rows: Rows) -> Array:
        """Return the residual friction along the motion at each tick, shape (n, 2) [N].

        On each axis the friction is reduced by the compensated fraction and by the size of a command against the
        motion, but not below zero (`devices.common.compensation`).
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
    """Return the friction of a law at the given speeds [N]."""
    forces: Array = np.asarray(law(np.column_stack((speed, np.zeros_like(speed)))))
    return np.asarray(forces[:, 0])


def residual_of(recording: Path, metadata: dict[str, Any]) -> Residual | None:
    """Return the residual friction with which a block was run, or None if unknown.

    The friction file is identified by the hash in the recording. It is either the copy in the session's folder or the
    original file.
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
