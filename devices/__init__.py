"""Devices: everything the servo can drive, each behind the contract of `haptics.device`.

A backend is a name and the class that answers to it. Classes are imported when they are first asked for, so that a
command that opens nothing needs neither numba nor a USB library. In front of an emulated device another class takes
the driver's place (`devices.emulated`); drivers know nothing of that. Other packages bring backends, too
(`haptics.plugins`). Virtual devices are plants that the commanded force or motion really moves; they need no hardware
and behave the same with the wall's clock and without one.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from haptics.clock import Clock
from haptics.device import Causality, Device
from haptics.errors import ConfigurationError, DeviceOpenError
from haptics.plugins import DEVICES, Plugin, find_plugins
from haptics.settings import unknown

__all__ = [
    "BACKENDS",
    "BackendInfo",
    "create_device",
    "describe_backends",
    "find_backend",
    "has_simulated_hand",
    "is_virtual",
    "open_device",
    "refused_plugins",
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
    package : str
        The package of somebody else that brings it, with its version; empty for those of this one.
    """

    name: str
    causality: Causality
    description: str
    place: str
    virtual: bool = False
    emulated: str = ""
    package: str = ""


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
        "inverse3",
        Causality.IMPEDANCE,
        "Haply Inverse3 or Minverse in a plane, through the WebSocket of the maker's service",
        "devices.inverse3.device:Inverse3",
        emulated="devices.emulated.inverse3:EmulatedInverse3",
    ),
    BackendInfo(
        "arm",
        Causality.ADMITTANCE,
        "arm with two motors on an ODrive and a force sensor (ATI, OnRobot, OptoForce)",
        "devices.arm.device:Arm",
        emulated="devices.emulated.arm:EmulatedArm",
    ),
)

if TYPE_CHECKING:
    BACKENDS: dict[str, BackendInfo]
    """Backend name to what is known of it."""


def __getattr__(name: str) -> Any:
    """Make `BACKENDS` when it is first asked for: packages are looked for then."""
    if name != "BACKENDS":
        raise AttributeError(f"module 'devices' has no attribute {name!r}")
    return _registry()[0]


@functools.cache
def _registry() -> tuple[dict[str, BackendInfo], dict[str, str]]:
    """Return every backend by name, and the names that others want for one, with what is wrong."""
    plugins = find_plugins(DEVICES, frozenset(info.name for info in _KNOWN))
    backends, refused = {info.name: info for info in _KNOWN}, dict(plugins.refused)
    for name, plugin in plugins.usable.items():
        try:
            backends[name] = _described(plugin)
        except ConfigurationError as error:
            refused[name] = str(error)
    return backends, refused


def _described(plugin: Plugin) -> BackendInfo:
    """Return what a package says of its backend."""
    info = plugin.load()
    if not isinstance(info, BackendInfo):
        raise plugin.refused("must be a devices.BackendInfo")
    if info.name != plugin.name or not isinstance(info.causality, Causality) or ":" not in info.place:
        raise plugin.refused(f"is described as {info}; needed are this name, a Causality, and a place module:Class")
    return replace(info, package=plugin.origin)


def describe_backends() -> tuple[BackendInfo, ...]:
    """Return what is known of every backend without importing any of them."""
    return tuple(_registry()[0].values())


def refused_plugins() -> tuple[str, ...]:
    """Return what is wrong with backends of other packages that cannot be used, a sentence each."""
    return tuple(_registry()[1].values())


def find_backend(name: Any) -> BackendInfo:
    """Return what is known of the backend called `name`.

    Raises
    ------
    ConfigurationError
        If there is none that can be used.
    """
    backends, refused = _registry()
    if isinstance(name, str) and name in backends:
        return backends[name]
    if isinstance(name, str) and name in refused:
        raise ConfigurationError(refused[name])
    raise unknown("device", str(name), backends)


def is_virtual(name: str) -> bool:
    """Tell whether the backend `name` is a plant in software."""
    return find_backend(name).virtual


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
    DeviceOpenError
        If the driver is that of another package and cannot be imported.
    """
    info, table = find_backend(name), dict(settings or {})
    place = info.place
    if info.emulated:
        if table.get("emulated") is True:
            place = info.emulated
        else:
            from devices.emulated.settings import table_of_driver

            emulation = _load(info, info.emulated).settings_class
            table = table_of_driver(table, _load(info, place).settings_class, emulation)
    return cast(Device, _load(info, place)(table, clock=clock))


def _load(info: BackendInfo, place: str) -> Any:
    """Return the class at a `place` of the backend; raise `DeviceOpenError` if that of another package is not there."""
    module, _, cls = place.partition(":")
    try:
        return getattr(importlib.import_module(module), cls)
    except Exception as error:  # whatever a foreign module does when it is imported
        if not info.package:
            raise
        raise DeviceOpenError(
            f"{info.name}: its driver {place} in the package {info.package} cannot be imported "
            f"({type(error).__name__}: {' '.join(str(error).split())})."
        ) from error


def open_device(name: str, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> Device:
    """Build a device and open it; opening it once more, as the servo does, changes nothing. See `create_device`."""
    device = create_device(name, settings, clock=clock)
    device.open()
    return device
