"""Exceptions, ordered by the phase in which the user meets them.

::

    HapticError
    +-- ConfigurationError (ValueError)   a setting, parameter or file is wrong: nothing was opened
    |   `-- CausalityError                this element cannot be paired with this device
    +-- RecordingError (ValueError)       a folder is not a readable recording
    +-- DeviceNotFoundError (LookupError) the device does not exist or is not plugged in
    +-- DeviceOpenError                   the device is present but could not be opened
    `-- DeviceFault                       the device failed during a run
        `-- ServoLost                     the servo process died unexpectedly

Messages are single sentences for users. They name the failure, the setting or device concerned, and the remedy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


class HapticError(Exception):
    """Base class of all exceptions that this project raises deliberately."""


class ConfigurationError(HapticError, ValueError):
    """A setting, parameter or input file is wrong; raised before any device is opened."""


class CausalityError(ConfigurationError, TypeError):
    """An element and a device have different causality (impedance and admittance)."""


class RecordingError(HapticError, ValueError):
    """A recording cannot be read, or the folder is not a recording."""


class DeviceNotFoundError(HapticError, LookupError):
    """No device of that kind is present."""


class DeviceOpenError(HapticError):
    """The device is present but could not be opened."""


class OpeningCancelled(DeviceOpenError):
    """The caller cancelled the opening of the device (`haptics.clock`)."""


class DeviceFault(HapticError):
    """The device failed during a run.

    The servo has written the safe output if the device still accepted it.

    Attributes
    ----------
    rows : structured array or None
        The last rows of the trace before the fault, newest last, for diagnosis.
    used : dict
        Resource usage of the run until the fault (`haptics.servo.realtime.usage`), if known.
    recording : Path or None
        Folder of the recording, for a fault in a session that a script controls (`haptics.open_session`).
    """

    def __init__(self, message: str, rows: Any = None) -> None:
        super().__init__(message)
        self.rows = rows
        self.used: dict[str, Any] = {}
        self.recording: Path | None = None


class ServoLost(DeviceFault):
    """The servo process died without an error message.

    Its recording is complete until then but was not closed.
    """


class ParameterWarning(UserWarning):
    """Parameters of a session do not suit its device; the message contains a remedy."""


class AmbiguousLawWarning(UserWarning):
    """A friction law falls so steeply that the next force is not unique.

    It violates condition (15) of Kikuuwe et al. 2006.
    """


def reason_of(error: Exception) -> str:
    """Return the message of an error without its final full stop, as a part of a longer message."""
    return str(error).removesuffix(".")
