"""Devices: everything the servo can drive, each behind the contract of `haptics.device`.

A backend is a name and the class that answers to it. Classes are imported when they are first asked for, so that a
command that opens nothing needs neither numba nor a USB library. Virtual devices are plants that the commanded force
or motion really moves; they need no hardware and behave the same with the wall's clock and without one.
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

BACKENDS: dict[str, tuple[str, str]] = {
    "virtual-joystick": ("devices.virtual.joystick", "VirtualJoystick"),
    "virtual-arm": ("devices.virtual.arm", "VirtualArm"),
    "pantograph": ("devices.pantograph.device", "Pantograph"),
    "pid-joystick": ("devices.joystick.device", "PidJoystick"),
    "arm": ("devices.arm.device", "Arm"),
}
"""Backend name to (module, class). The class takes ``(settings, clock=...)`` and touches nothing until ``open``."""


@dataclass(frozen=True, slots=True)
class BackendInfo:
    """What a person needs to know to choose a backend.

    Attributes
    ----------
    name : str
        The name for ``--device``.
    causality : Causality
        Which models go with it.
    description : str
        One line.
    virtual : bool
        Whether it is a plant in software, which needs a hand and has a seed and a log.
    missing : tuple of str
        What must be installed or plugged in before it can be used; empty if nothing.
    """

    name: str
    causality: Causality
    description: str
    virtual: bool = False
    missing: tuple[str, ...] = ()


_DESCRIPTIONS: dict[str, tuple[Causality, str, bool]] = {
    "virtual-joystick": (
        Causality.IMPEDANCE,
        "backdrivable joystick, moved by a hand and by the force on it",
        True,
    ),
    "virtual-arm": (
        Causality.ADMITTANCE,
        "arm with force sensor and position servo, pushed by a hand",
        True,
    ),
    "pantograph": (
        Causality.IMPEDANCE,
        "Haply hAPI board with a two-motor pantograph, on a serial port",
        False,
    ),
    "pid-joystick": (
        Causality.IMPEDANCE,
        "force-feedback joystick on USB (class Physical Interface Device), calibrated",
        False,
    ),
    "arm": (
        Causality.ADMITTANCE,
        "arm with two motors on an ODrive and a force sensor (ATI, OnRobot, OptoForce)",
        False,
    ),
}
"""Causality, description and whether it is virtual, known without importing the backend."""


def describe_backends() -> tuple[BackendInfo, ...]:
    """Return what is known of every backend without importing any of them."""
    return tuple(BackendInfo(name, *_DESCRIPTIONS[name]) for name in BACKENDS)


def is_virtual(name: str) -> bool:
    """Tell whether the backend `name` is a plant in software."""
    return _DESCRIPTIONS[name][2]


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
    module, cls = BACKENDS[name]
    return cast(Device, getattr(importlib.import_module(module), cls)(settings, clock=clock))


def open_device(name: str, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> Device:
    """Build a device and open it; opening it once more, as the servo does, changes nothing. See `create_device`."""
    device = create_device(name, settings, clock=clock)
    device.open()
    return device
