"""Declarations of the manufacturer's HDAPI library, ``libHD.so``, for ctypes.

Names, numbers and signatures are taken from OpenHaptics 3.0 (API Reference, Programmer's Guide, headers and exported
symbols in danepowell/openhaptics). Programs for 3.4 (pyOpenHaptics, jhu-saw/sawSensablePhantom) use the same, and the
API Reference of 3.5 lists the same functions. The variable for the place of the licence is from the maker's README of
version 1.01.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any

from devices.common.vendor_library import VendorLibrary

NAME = "touch"

OPENHAPTICS = VendorLibrary(
    backend=NAME,
    title="OpenHaptics toolkit",
    files=("libHD.so",),
    variables=("OPENHAPTICS",),
    folders=("lib", "lib64", "usr/lib", "usr/lib64"),
    usual=("/opt/OpenHaptics/Developer/*",),
)
"""The manufacturer's library."""

IDENTITIES = ("2988:0302", "0301:2988")
"""USB identities of a Touch and of a Touch Stylus, as users report them; others are on Ethernet or FireWire."""

# --- types ------------------------------------------------------------------------------------------------------------

HHD = ctypes.c_uint
INVALID_HANDLE = 0xFFFFFFFF


class ErrorInfo(ctypes.Structure):
    """``HDErrorInfo``: an entry of the error stack, returned by value (12 bytes)."""

    _fields_ = (("code", ctypes.c_uint), ("internal", ctypes.c_int), ("handle", HHD))


CALLBACK = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_void_p)
"""``HDSchedulerCallback``, called once per tick of the scheduler while it returns `CONTINUE`."""

CONTINUE = 1
"""Result of a callback that remains scheduled; 0 ends it."""

MAX_PRIORITY = 0xFFFF
"""Priority of a callback that runs before the others."""

# --- numbers ----------------------------------------------------------------------------------------------------------


class Parameter(IntEnum):
    """Names of ``hdGet`` and ``hdSet``. Units are mm, mm/s, N and s."""

    BUTTONS = 0x2000
    POSITION = 0x2050
    MODEL = 0x2501
    DRIVER_VERSION = 0x2502
    VENDOR = 0x2503
    SERIAL_NUMBER = 0x2504
    FIRMWARE_VERSION = 0x2505
    USABLE_WORKSPACE = 0x2551
    CALIBRATION_STYLE = 0x2555
    MAX_FORCE = 0x2603
    CONTINUOUS_FORCE = 0x2604
    MOTOR_TEMPERATURE = 0x2605
    RAMPING_RATE = 0x2608
    FORCE = 0x2700


FORCE_OUTPUT = 0x4000
"""Capability of ``hdEnable`` and ``hdDisable``: the motors are on."""

PROTECTIONS = {"force_clamping": 0x4001, "force_ramping": 0x4002, "software_force_limit": 0x4003}
"""Further capabilities, which the driver does not change."""


class Calibration(IntEnum):
    """Results of ``hdCheckCalibration``."""

    OK = 0x5000
    NEEDS_UPDATE = 0x5001
    NEEDS_MANUAL_INPUT = 0x5002


class Style(IntEnum):
    """Bits of `Parameter.CALIBRATION_STYLE`."""

    ENCODER_RESET = 1
    AUTO = 2
    INKWELL = 4


ERRORS: dict[int, str] = {
    0x0100: "the library does not know a parameter that the driver uses",
    0x0101: "the library rejected a value",
    0x0102: "the library could not perform an operation",
    0x0103: "the library rejected the type of a parameter",
    0x0104: "the device handle is not valid",
    0x0200: "the motors are too warm: let them cool down, and use smaller forces or shorter holds",
    0x0201: "the force exceeded the maker's limit: reduce device.max_force or device.hold_force",
    0x0202: "the force changed faster than the maker's limit: use a softer contact, or reduce envelope.max_force_rate",
    0x0203: "the stylus moved faster than the maker's limit",
    0x0204: "forces of incompatible kinds were sent",
    0x0300: "the device reports a fault: check its cables and its power supply",
    0x0301: "the device is in use already: end the other program that uses it",
    0x0302: "the communication failed: check the cable, and that the maker's diagnostic program reaches the device",
    0x0303: "the configuration names another port or adapter than the device's: run the maker's set-up program",
    0x0304: "the maker's servo loop could not keep its timer: close other programs",
    0x0400: "the frame began twice",
    0x0401: "the frame ended without a beginning",
    0x0402: "a function was called outside of a frame",
    0x0500: "the priority of the callback is not valid",
    0x0501: "the maker's scheduler accepts no more callbacks",
    0x0600: "the OpenHaptics licence is missing or invalid: get a licence file from the maker, and set the variable "
    "OH_SDK_LICENSE_PATH to its place; the installation guide of your version says more",
}
"""Meaning of the error codes, with a remedy if one exists."""

FORCE_ERRORS = range(0x0200, 0x0205)
"""Errors of the force, after which the device still receives commands."""

DEVICE_ERRORS = (0x0300, 0x0302, 0x0303)
"""Errors of ``hdInitDevice`` if the device or its configuration is missing."""


def explain(code: int, internal: int) -> str:
    """Return the meaning of an error, with both numbers for the manufacturer's support."""
    meaning = ERRORS.get(code, "the library reports an unknown error")
    return f"{meaning} (error 0x{code:04x}, internal {internal})"


# --- functions --------------------------------------------------------------------------------------------------------

_UINT, _DOUBLES, _INTS = ctypes.c_uint, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_int)

PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "hdInitDevice": (HHD, (ctypes.c_char_p,)),
    "hdDisableDevice": (None, (HHD,)),
    "hdBeginFrame": (None, (HHD,)),
    "hdEndFrame": (None, (HHD,)),
    "hdGetError": (ErrorInfo, ()),
    "hdEnable": (None, (_UINT,)),
    "hdDisable": (None, (_UINT,)),
    "hdIsEnabled": (ctypes.c_ubyte, (_UINT,)),
    "hdGetDoublev": (None, (_UINT, _DOUBLES)),
    "hdGetIntegerv": (None, (_UINT, _INTS)),
    "hdGetString": (ctypes.c_char_p, (_UINT,)),
    "hdSetDoublev": (None, (_UINT, _DOUBLES)),
    "hdCheckCalibration": (_UINT, ()),
    "hdUpdateCalibration": (None, (_UINT,)),
    "hdStartScheduler": (None, ()),
    "hdStopScheduler": (None, ()),
    "hdScheduleAsynchronous": (ctypes.c_ulong, (CALLBACK, ctypes.c_void_p, ctypes.c_ushort)),
    "hdUnschedule": (None, (ctypes.c_ulong,)),
}
"""Result and arguments of every function that the driver uses."""
