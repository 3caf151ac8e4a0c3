"""Devices: everything the servo can drive, each behind the contract of `haptics.device`.

A backend is a name and the class that answers to it. Classes are imported when they are first asked for, so that a
command that opens nothing needs neither numba nor a USB library. In front of an emulated device another class takes
the driver's place (`devices.emulated`); drivers know nothing of that. Virtual devices are plants that the commanded
force or motion really moves; they need no hardware and behave the same with the wall's clock and without one.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from haptics.clock import Clock
from haptics.device import Causality, Device
from haptics.settings import unknown

__all__ = [
    "BACKENDS",
    "BackendInfo",
    "create_device",
    "describe_backends",
    "has_simulated_hand",
    "is_virtual",
    "open_device",
]


@dataclass(frozen=True, slots=True)
class BackendInfo:
    """What is known of a backend without importing it.

    Attributes
    ----------
    name : str
        The name for ``--device``.
    causality : Causality
        Which models go with it.
    description : str
        One line.
    place : str
        ``module:Class``. The class takes ``(settings, clock=...)`` and touches nothing until ``open``.
    virtual : bool
        Whether it is a plant in software, which needs a hand and has a seed and a log.
    emulated : str
        ``module:Class`` of the driver in front of an emulated device (`devices.emulated`), if there is one.
    """

    name: str
    causality: Causality
    description: str
    place: str
    virtual: bool = False
    emulated: str = ""


_KNOWN = (
    BackendInfo(
        "virtual-joystick",
        Causality.IMPEDANCE,
        "backdrivable joystick, moved by a hand and by the force on it",
        "devices.virtual.joystick:VirtualJoystick",
        virtual=True,
    ),
    BackendInfo(
        "virtual-arm",
        Causality.ADMITTANCE,
        "arm with force sensor and position servo, pushed by a hand",
        "devices.virtual.arm:VirtualArm",
        virtual=True,
    ),
    BackendInfo(
        "pantograph",
        Causality.IMPEDANCE,
        "Haply hAPI board with a two-motor pantograph, on a serial port",
        "devices.pantograph.device:Pantograph",
        emulated="devices.emulated.pantograph:EmulatedPantograph",
    ),
    BackendInfo(
        "pid-joystick",
        Causality.IMPEDANCE,
        "force-feedback joystick on USB (class Physical Interface Device), calibrated",
        "devices.joystick.device:PidJoystick",
        emulated="devices.emulated.joystick:EmulatedPidJoystick",
    ),
    BackendInfo(
        "arm",
        Causality.ADMITTANCE,
        "arm with two motors on an ODrive and a force sensor (ATI, OnRobot, OptoForce)",
        "devices.arm.device:Arm",
        emulated="devices.emulated.arm:EmulatedArm",
    ),
)

BACKENDS: dict[str, BackendInfo] = {info.name: info for info in _KNOWN}
"""Backend name to what is known of it."""


def describe_backends() -> tuple[BackendInfo, ...]:
    """Return what is known of every backend without importing any of them."""
    return tuple(BACKENDS.values())


def is_virtual(name: str) -> bool:
    """Tell whether the backend `name` is a plant in software."""
    return BACKENDS[name].virtual


def has_simulated_hand(name: str, settings: Mapping[str, Any] | None = None) -> bool:
    """Tell whether the backend `name` with these settings is held by a hand in software.

    Virtual devices are, and so are the real drivers that talk to an emulated device (``emulated = true``). They take a
    table ``hand``, a ``seed``, the ``period`` of a tick and a ``log``.
    """
    return is_virtual(name) or (settings or {}).get("emulated") is True


def create_device(name: str, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> Device:
    """Build a device without opening it, so that its `spec` can be checked first.

    Parameters
    ----------
    name : str
        A key of `BACKENDS`.
    settings : mapping, optional
        The device's settings; tables may be nested (``{"mass": 0.2, "hand": {"name": "minimum-jerk"}}``).
    clock : Clock, optional
        The run's clock. Without one a virtual device advances by one period at every ``read``.

    Raises
    ------
    ConfigurationError
        If there is no such backend or a setting is wrong.
    """
    if name not in BACKENDS:
        raise unknown("device", name, BACKENDS)
    info, table = BACKENDS[name], dict(settings or {})
    place = info.place
    if info.emulated:
        if table.get("emulated") is True:
            place = info.emulated
        else:
            from devices.emulated.settings import table_of_driver

            table = table_of_driver(table, _load(place).settings_class, _load(info.emulated).settings_class)
    return cast(Device, _load(place)(table, clock=clock))


def _load(place: str) -> Any:
    """Return the class at ``module:Class``."""
    module, _, cls = place.partition(":")
    return getattr(importlib.import_module(module), cls)


def open_device(name: str, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> Device:
    """Build a device and open it; opening it once more, as the servo does, changes nothing. See `create_device`."""
    device = create_device(name, settings, clock=clock)
    device.open()
    return device
