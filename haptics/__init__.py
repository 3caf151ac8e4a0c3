"""Haptics: friction elements at 1 kHz, the contract of a device, the servo, the trace.

This floor knows no driver, no window and no file format but its own; it needs NumPy and numba only. Its public names
are loaded when they are first used, so that a command that computes nothing starts without numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from haptics.clock import Clock, WallClock
    from haptics.device import Causality, Device, DeviceSpec, State
    from haptics.elements import (
        CompliantAdmittance,
        Element,
        InertialImpedance,
        MasslessImpedance,
        RigidAdmittance,
    )
    from haptics.errors import (
        CausalityError,
        ConfigurationError,
        DeviceFault,
        DeviceNotFoundError,
        DeviceOpenError,
        HapticError,
        RecordingError,
    )
    from haptics.friction import Coulomb, CoulombViscous, Law, Stribeck
    from haptics.recording import Recording
    from haptics.servo import Servo
    from haptics.simulation import Simulation, simulate
    from haptics.trace import Status, Trace

_HOMES = {
    "clock": ("Clock", "WallClock"),
    "device": ("Causality", "Device", "DeviceSpec", "State"),
    "elements": ("CompliantAdmittance", "Element", "InertialImpedance", "MasslessImpedance", "RigidAdmittance"),
    "errors": (
        "CausalityError",
        "ConfigurationError",
        "DeviceFault",
        "DeviceNotFoundError",
        "DeviceOpenError",
        "HapticError",
        "RecordingError",
    ),
    "friction": ("Coulomb", "CoulombViscous", "Law", "Stribeck"),
    "recording": ("Recording",),
    "servo": ("Servo",),
    "simulation": ("Simulation", "simulate"),
    "trace": ("Status", "Trace"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Causality",
    "CausalityError",
    "Clock",
    "CompliantAdmittance",
    "ConfigurationError",
    "Coulomb",
    "CoulombViscous",
    "Device",
    "DeviceFault",
    "DeviceNotFoundError",
    "DeviceOpenError",
    "DeviceSpec",
    "Element",
    "HapticError",
    "InertialImpedance",
    "Law",
    "MasslessImpedance",
    "Recording",
    "RecordingError",
    "RigidAdmittance",
    "Servo",
    "Simulation",
    "State",
    "Status",
    "Stribeck",
    "Trace",
    "WallClock",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    try:
        module = importlib.import_module(f"haptics.{_HOME_OF[name]}")
    except KeyError:
        raise AttributeError(f"module 'haptics' has no attribute {name!r}") from None
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
