"""Devices for the servo, each behind the interface of `haptics.device`.

A backend is a name and a class. Classes are imported on first use, so that commands that open no device need neither
numba nor a USB library. For an emulated device another class replaces the driver (`devices.emulated`); drivers are
independent of it. Other packages can provide backends (`haptics.plugins`). Virtual devices are simulated plants that
are moved by the commanded force or motion. They need no hardware and behave identically in real time and in simulated
time.
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
from haptics.settings import unknown_name

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
    """Description of a backend, available without importing it.

    Attributes
    ----------
    name : str
        Name for ``--device``.
    causality : Causality
        Causality of the models that it supports.
    description : str
        One line.
    place : str
        ``module:Class``. The class takes ``(settings, clock=...)`` and does not access hardware before ``open``.
    virtual : bool
        True for a simulated plant, which needs a hand and has a seed and a log.
    emulated : str
        ``module:Class`` of the driver with an emulated device (`devices.emulated`), or empty.
    package : str
        Other package that provides the backend, with its version; empty for built-in backends.
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
        "forcedimension",
        Causality.IMPEDANCE,
        "Force Dimension omega, delta, sigma or lambda in a plane, through the maker's SDK",
        "devices.forcedimension.device:ForceDimension",
        emulated="devices.emulated.forcedimension:EmulatedForceDimension",
    ),
    BackendInfo(
        "touch",
        Causality.IMPEDANCE,
        "3D Systems Touch or Phantom in a plane, through the maker's OpenHaptics library",
        "devices.touch.device:Touch",
        emulated="devices.emulated.touch:EmulatedTouch",
    ),
    BackendInfo(
        "falcon",
        Causality.IMPEDANCE,
        "Novint Falcon in a plane, on USB without its maker's software",
        "devices.falcon.device:Falcon",
        emulated="devices.emulated.falcon:EmulatedFalcon",
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
    """Description of every backend, by name."""


def __getattr__(name: str) -> Any:
    """Create `BACKENDS` on first access, because it requires a search of installed packages."""
    if name != "BACKENDS":
        raise AttributeError(f"module 'devices' has no attribute {name!r}")
    return _registry()[0]


@functools.cache
def _registry() -> tuple[dict[str, BackendInfo], dict[str, str]]:
    """Return the usable backends by name, and the reasons why plug-ins are unusable, by name."""
    plugins = find_plugins(DEVICES, frozenset(info.name for info in _KNOWN))
    backends, refused = {info.name: info for info in _KNOWN}, dict(plugins.refused)
    for name, plugin in plugins.usable.items():
        try:
            backends[name] = _described(plugin)
        except ConfigurationError as error:
            refused[name] = str(error)
    return backends, refused


def _described(plugin: Plugin) -> BackendInfo:
    """Load the backend description from a plug-in and validate it."""
    info = plugin.load()
    if not isinstance(info, BackendInfo):
        raise plugin.refused("must be a devices.BackendInfo")
    if info.name != plugin.name or not isinstance(info.causality, Causality) or ":" not in info.place:
        raise plugin.refused(f"is described as {info}; needed are this name, a Causality, and a place module:Class")
    return replace(info, package=plugin.origin)


def describe_backends() -> tuple[BackendInfo, ...]:
    """Return the descriptions of all backends without importing them."""
    return tuple(_registry()[0].values())


def refused_plugins() -> tuple[str, ...]:
    """Return the reasons why backends of other packages are unusable, one sentence each."""
    return tuple(_registry()[1].values())


def find_backend(name: Any) -> BackendInfo:
    """Return the description of the backend with this name.

    Raises
    ------
    ConfigurationError
        If no usable backend has this name.
    """
    backends, refused = _registry()
    if isinstance(name, str) and name in backends:
        return backends[name]
    if isinstance(name, str) and name in refused:
        raise ConfigurationError(refused[name])
    raise unknown_name("device", str(name), backends)


def is_virtual(name: str) -> bool:
    """Return True if the backend is a simulated plant."""
    return find_backend(name).virtual


def has_simulated_hand(name: str, settings: Mapping[str, Any] | None = None) -> bool:
    """Return True if the backend is held by a simulated hand with these settings.

    This applies to virtual devices and to real drivers with an emulated device (``emulated = true``). They have a table
    ``hand``, a ``seed``, the ``period`` of a tick and a ``log``.
    """
    return is_virtual(name) or (settings or {}).get("emulated") is True


def create_device(name: str, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> Device:
    """Create a device without opening it, so that its `spec` can be checked first.

    Parameters
    ----------
    name : str
        A key of `BACKENDS`.
    settings : mapping, optional
        Settings of the device; tables may be nested (``{"mass": 0.2, "hand": {"name": "minimum-jerk"}}``).
    clock : Clock, optional
        Clock of the run. Without a clock a virtual device advances by one period at every ``read``.

    Raises
    ------
    ConfigurationError
        If the backend does not exist or a setting is invalid.
    DeviceOpenError
        If the driver belongs to another package and cannot be imported.
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
    """Import the class at `place`; raise `DeviceOpenError` if another package fails to import."""
    module, _, cls = place.partition(":")
    try:
        return getattr(importlib.import_module(module), cls)
    except Exception as error:  # a foreign module may raise any error on import
        if not info.package:
            raise
        raise DeviceOpenError(
            f"{info.name}: its driver {place} in the package {info.package} cannot be imported "
            f"({type(error).__name__}: {' '.join(str(error).split())})."
        ) from error


def open_device(name: str, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> Device:
    """Create a device and open it; see `create_device`.

    Opening it again, as the servo does, has no effect.
    """
    device = create_device(name, settings, clock=clock)
    device.open()
    return device
