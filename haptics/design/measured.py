"""Measured properties of a device, read from the parameter file of ``haptics calibrate device``.

::

    [provenance]
    device = "virtual-joystick virtual, seed 1"

    [axis.x]
    mass_kg = 0.2
    damping_ns_per_m = 1.0
    delay_s = 0.0005
    resolution_m = 1e-05

    [axis.x.boundary]
    rate_hz = 1000.0
    damping_ns_per_m = 28.0             # damping of the contact
    velocity_lag_s = 0.0
    stiffness_n_per_m = 24600.0         # absent if not found

Other keys are ignored. The boundary was measured at one damping and rate. At others, it is assumed to deviate from the
exact limit of the identified handle by the same factor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from haptics.design.bounds import stiffness_limit
from haptics.design.loops import Handle
from haptics.device import DeviceSpec
from haptics.errors import ConfigurationError
from haptics.files import read_toml
from haptics.settings import subtable


@dataclass(frozen=True)
class MeasuredAxis:
    """Measured properties of one axis.

    Attributes
    ----------
    name : str
        Name of the axis.
    handle : Handle
        Identified handle.
    factor : float or None
        Measured stability boundary divided by the limit of `handle`; None if no boundary was found.
    """

    name: str
    handle: Handle
    factor: float | None

    def limit(self, damping: float, period: float) -> float:
        """Return the stiffness [N/m] above which a sticking contact of this damping [N s/m] oscillates.

        Infinite if no boundary was measured.
        """
        return math.inf if self.factor is None else self.factor * stiffness_limit(self.handle, damping, period)


@dataclass(frozen=True)
class Measured:
    """Measured properties of a device.

    Attributes
    ----------
    axes : tuple of MeasuredAxis
        At least one axis.
    path : str
        Path of the parameter file.
    """

    axes: tuple[MeasuredAxis, ...]
    path: str

    def require_held(self, stiffness: float, damping: float, period: float) -> None:
        """Reject a coupling beyond the measured stability boundary.

        Raises
        ------
        ConfigurationError
            With the allowed stiffness.
        """
        axis = min(self.axes, key=lambda one: one.limit(damping, period))
        limit = axis.limit(damping, period)
        if stiffness >= limit:
            raise ConfigurationError(
                f"element.stiffness = {stiffness:g} N/m: with element.damping = {damping:g} N s/m at {1.0 / period:g} "
                f"Hz the device begins to swing at {limit:.4g} N/m along {axis.name}, as was measured "
                f"({self.path}); choose less, or leave session.measured out."
            )

    def describe(self, spec: DeviceSpec) -> DeviceSpec:
        """Return the data sheet with measured values in place of stated ones.

        Mass and damping are the smallest, delay and resolution the largest of all axes.
        """
        handles = [one.handle for one in self.axes]
        return replace(
            spec,
            mass=min(one.mass for one in handles),
            damping=min(one.damping for one in handles),
            delay=max(one.delay for one in handles),
            position_resolution=max(one.resolution for one in handles) or spec.position_resolution,
        )


def read_measured(path: str | Path, device: str) -> Measured:
    """Read the measured properties of the device with this name.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, belongs to another device, or contains a missing or invalid value.
    """
    where = f"session.measured = {str(path)!r}"
    content = read_toml(path, where, f"haptics calibrate device --device {device} makes such a file")
    try:
        found = str(subtable(content, "provenance").get("device", ""))
        if found and found.split(maxsplit=1)[0] != device:
            raise ConfigurationError(f"is of the device {found!r}; must be of {device!r}.")
        axes = subtable(content, "axis")
        if not axes:
            raise ConfigurationError("has no table [axis.x].")
        found_axes = []
        for name in axes:
            where, table = f"axis.{name}", subtable(axes, name)
            boundary = subtable(table, "boundary")
            lag = _number(boundary, "velocity_lag_s", f"{where}.boundary") if boundary else 0.0
            keys = ("mass_kg", "damping_ns_per_m", "delay_s", "resolution_m")
            mass, damping, delay, resolution = (_number(table, key, where) for key in keys)
            handle = Handle(mass, damping, delay, resolution, lag)
            factor: float | None = None
            if "stiffness_n_per_m" in boundary:
                rate, contact, stiffness = (
                    _number(boundary, key, f"{where}.boundary")
                    for key in ("rate_hz", "damping_ns_per_m", "stiffness_n_per_m")
                )
                limit = stiffness_limit(handle, contact, 1.0 / rate) if rate > 0.0 else 0.0
                if not (limit > 0.0 and stiffness > 0.0):
                    raise ConfigurationError(f"{where}.boundary: no contact of these numbers is ever stable.")
                factor = stiffness / limit
            found_axes.append(MeasuredAxis(name, handle, factor))
        return Measured(tuple(found_axes), str(path))
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def _number(table: Mapping[str, Any], key: str, where: str) -> float:
    value = table.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
        raise ConfigurationError(f"{where}.{key} = {value!r}: must be a finite number of at least 0.")
    return float(value)
