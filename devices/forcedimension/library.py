"""Functions of the Force Dimension SDK, and checks of their results."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from ctypes import POINTER, c_bool, c_byte, c_char_p, c_double, c_int, c_ubyte, c_uint, c_ushort
from typing import Any

from devices.common.vendor_library import Symbols, VendorLibrary
from haptics.errors import HapticError

NAME = "forcedimension"

_PROCESSORS = (platform.machine(), "x86_64", "aarch64", "arm64")  # the others too, to name a wrong one

LIBRARY = VendorLibrary(
    backend=NAME,
    title="Force Dimension SDK",
    files=("libdrd.so", "libdhd.so"),
    variables=("FDSDK", "FORCEDIM_SDK"),
    folders=(*(f"lib/release/lin-{name}-gcc" for name in _PROCESSORS), "lib"),
    usual=("/opt/forcedimension/sdk-*", "/opt/sdk-*", "~/sdk-*", "/usr/local/sdk-*"),
)
"""The library; ``libdhd`` lacks the functions ``drd``, which is then reported."""

IDENTITIES = ("1451:0301", "1451:0402", "1451:0403", "1451:040c")
"""Known USB identities, from udev rules of users; the maker's vendor number is 1451."""

_ID = c_byte  # the maker's ``char ID``
_DOUBLES = (POINTER(c_double),) * 3

SYMBOLS: Symbols = {
    "dhdErrorGetLast": (c_int, ()),
    "dhdErrorGetLastStr": (c_char_p, ()),
    "dhdGetSDKVersion": (None, (POINTER(c_int),) * 4),
    "dhdGetDeviceCount": (c_int, ()),
    "dhdOpenID": (c_int, (_ID,)),
    "dhdClose": (c_int, (_ID,)),
    "dhdGetSerialNumber": (c_int, (POINTER(c_ushort), _ID)),
    "dhdGetSystemName": (c_char_p, (_ID,)),
    "dhdGetSystemType": (c_int, (_ID,)),
    "dhdGetVersion": (c_int, (POINTER(c_double), _ID)),
    "dhdGetStatus": (c_int, (POINTER(c_int), _ID)),
    "dhdGetPosition": (c_int, (*_DOUBLES, _ID)),
    "dhdConfigLinearVelocity": (c_int, (c_int, c_int, _ID)),
    "dhdGetLinearVelocity": (c_int, (*_DOUBLES, _ID)),
    "dhdSetForce": (c_int, (c_double, c_double, c_double, _ID)),
    "dhdEnableForce": (c_int, (c_bool, _ID)),
    "dhdSetBrakes": (c_int, (c_bool, _ID)),
    "dhdSetGravityCompensation": (c_int, (c_bool, _ID)),
    "dhdSetEffectorMass": (c_int, (c_double, _ID)),
    "dhdGetButtonMask": (c_uint, (_ID,)),
    "dhdSetOutput": (c_int, (c_uint, _ID)),
    "dhdGetComFreq": (c_double, (_ID,)),
    "dhdEnableExpertMode": (c_int, ()),
    "dhdDisableExpertMode": (c_int, ()),
    "dhdSetVelocityThreshold": (c_int, (c_uint, _ID)),
    "dhdGetVelocityThreshold": (c_int, (POINTER(c_uint), _ID)),
    "dhdSetWatchdog": (c_int, (c_ubyte, _ID)),
    "dhdGetWatchdog": (c_int, (POINTER(c_ubyte), _ID)),
    "drdOpenID": (c_int, (_ID,)),
    "drdIsInitialized": (c_bool, (_ID,)),
    "drdAutoInit": (c_int, (_ID,)),
    "drdStop": (c_int, (c_bool, _ID)),
}
"""Functions that the driver needs, from SDK 3.6 on.

Flags are ``unsigned char`` or ``int`` in old versions and ``bool`` in new ones, which makes no difference to a call.
"""

OPTIONAL: Symbols = {"dhdSetMaxForce": (c_int, (c_double, _ID)), "dhdGetMaxForce": (c_double, (_ID,))}
"""Functions of newer versions."""

TIMEGUARD, MOTOR_SATURATED = 1, 2
"""Results that are no errors: the communication was skipped because the last one was too recent; all motors were
scaled down, with the direction of the force kept."""

STATUS_SIZE = 32
"""Length of the status vector that the library may fill; 17 numbers in SDK 3.16."""

POWER, CONNECTED, RESET, FORCE, FORCE_OFF_CAUSE = 0, 1, 3, 5, 14
"""Indices of the status vector. `RESET` is 1 while the device is not initialised."""

CAUSES = {
    1: "its force button was pressed; press it again to switch the forces on",
    2: "its velocity threshold was exceeded: choose a smaller force, or a larger device.velocity_threshold",
    3: "its watchdog received no force for longer than device.hardware_watchdog: this computer was too busy, or calls "
    "of the library took too long",
    4: "another command switched them off",
    5: "its USB connection was lost",
    6: "its dead-man's switch was released",
}
"""Causes for which the device has switched the forces off, by the number in the status vector."""

WATCHDOG_UNIT = 125e-6
"""Unit of the watchdog [s]; its largest value is 255 units."""

VELOCITY_WINDOWING = 0
"""Mode of the maker's velocity estimator: mean over a window."""


class SdkError(HapticError):
    """A function of the library failed; the message has its name and the library's reason."""


class Sdk:
    """One device of the loaded library. Every call checks the result, in the calling thread.

    Parameters
    ----------
    library : ctypes.CDLL
        Library with the functions of `SYMBOLS`.
    device : int
        The maker's number of the open device.
    """

    def __init__(self, library: Any, device: int) -> None:
        self.library, self.device = library, device
        self._status = (c_int * STATUS_SIZE)()
        self._vector = tuple(c_double() for _ in range(3))

    def call(self, name: str, *arguments: Any) -> int:
        """Call the function `name` with the number of the device as the last argument; return its result.

        Raises
        ------
        SdkError
            If the result is negative.
        """
        result = int(getattr(self.library, name)(*arguments, self.device))
        if result < 0:
            raise failure(self.library, name)
        return result

    def vector(self, name: str) -> tuple[int, tuple[float, ...]]:
        """Return the result and the three numbers of a function such as ``dhdGetPosition``."""
        result = self.call(name, *self._vector)
        return result, tuple(number.value for number in self._vector)

    def number(self, name: str, kind: Any) -> Any:
        """Return the number of type `kind` that the function `name` writes to its first argument."""
        found = kind()
        self.call(name, found)
        return found.value

    def status(self) -> list[int]:
        """Return the status vector."""
        self.call("dhdGetStatus", self._status)
        return list(self._status)


def failure(library: Any, name: str) -> SdkError:
    """Return the error of the function `name`, which has failed in this thread."""
    text = library.dhdErrorGetLastStr()
    return SdkError(f"{name} failed ({text.decode(errors='replace') if text else library.dhdErrorGetLast()})")


def trouble(status: Sequence[int]) -> str:
    """Return the reason in a status vector for which a run must end, or an empty text."""
    if not status[CONNECTED]:
        return "the device is not connected any more"
    if not status[POWER]:
        return "the device has no power: check its power supply"
    if status[RESET]:
        return "the device is not initialised any more, and its positions are wrong: initialise it again"
    if not status[FORCE]:
        cause = CAUSES.get(status[FORCE_OFF_CAUSE])
        return f"the device has switched the forces off: {cause or 'it states no cause'}"
    return ""
