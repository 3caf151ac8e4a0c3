"""The error tree, by the phase in which a person meets the error.

::

    HapticError
    +-- ConfigurationError (ValueError)   a setting, parameter or file is wrong: nothing was opened
    |   `-- CausalityError                this element cannot be paired with this device
    +-- RecordingError (ValueError)       a recording cannot be read, or is not one
    +-- DeviceNotFoundError (LookupError) no such device, or it is not plugged in
    +-- DeviceOpenError                   the device is there but could not be opened
    `-- DeviceFault                       the device failed during a run
        `-- ServoLost                     the process that serves it died unexpectedly

Messages are single sentences for people: what happened, which setting or device, what to do next.
"""

from __future__ import annotations

from typing import Any


class HapticError(Exception):
    """Base of every error this project raises on purpose."""


class ConfigurationError(HapticError, ValueError):
    """A setting, parameter or input file is wrong; raised before any device is opened."""


class CausalityError(ConfigurationError, TypeError):
    """An element and a device do not fit together (impedance against admittance)."""


class RecordingError(HapticError, ValueError):
    """A recording cannot be read, or the folder is not a recording."""


class DeviceNotFoundError(HapticError, LookupError):
    """No device of that kind is present."""


class DeviceOpenError(HapticError):
    """The device is present but could not be opened."""


class OpeningCancelled(DeviceOpenError):
    """The opening of the device was cancelled (`haptics.clock`)."""


class DeviceFault(HapticError):
    """The device failed during a run; its safe output was written if it still took one.

    Attributes
    ----------
    rows : structured array or None
        The last rows of the trace before the fault, newest last, for diagnosis.
    used : dict
        What the run had used of the machine until then (`haptics.servo.realtime.Usage`), where it is known.
    """

    def __init__(self, message: str, rows: Any = None) -> None:
        super().__init__(message)
        self.rows = rows
        self.used: dict[str, Any] = {}


class ServoLost(DeviceFault):
    """The servo process died and gave no reason; its recording is complete up to that instant but was not closed."""


class AmbiguousLawWarning(UserWarning):
    """A friction law falls so steeply that the next force is not unique (condition (15) of Kikuuwe et al. 2006)."""
