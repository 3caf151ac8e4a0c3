"""Selection of a device from the service's inventory, and validation that it can be used."""

from __future__ import annotations

import math
from collections.abc import Sequence

from devices.inverse3.messages import Listed
from devices.inverse3.settings import KINDS
from haptics.errors import DeviceNotFoundError, DeviceOpenError

NAME = "inverse3"


def choose(devices: Sequence[Listed], device_id: str) -> Listed:
    """Return the device with the name `device_id`, or the only one if that is empty.

    Raises
    ------
    DeviceNotFoundError
        If it is not in the inventory.
    DeviceOpenError
        If the selection is ambiguous.
    """
    if not devices:
        raise DeviceNotFoundError(
            f"{NAME}: the service knows of no Inverse3 or Minverse: plug it in, with its power supply, and see that "
            "the Haply Hub shows it. Or do without one: device.emulated=true."
        )
    known = ", ".join(device.device_id for device in devices)
    meant = [device for device in devices if not device_id or device_id in device.names]
    if not meant:
        raise DeviceNotFoundError(f"{NAME}: there is no device.device_id = {device_id!r}; the service knows {known}.")
    if len(meant) > 1:
        raise DeviceOpenError(f"{NAME}: several devices are there; choose one with device.device_id: {known}.")
    (one,) = meant
    if sum(device.device_id == one.device_id for device in devices) > 1:
        raise DeviceOpenError(
            f"{NAME}: two devices have the number {one.device_id}, by which the service tells whom a force is for: "
            "unplug one of them."
        )
    return one


def require_free(device: Listed) -> None:
    """Raise an error if another program uses the device: the service adds the forces of all programs.

    Raises
    ------
    DeviceOpenError
        If the device is in use.
    """
    if device.status.get("in_use"):
        raise DeviceOpenError(f"{NAME}: the device {device.device_id} is in use by another program: close that first.")


def require_kind(device: Listed, kind: str) -> None:
    """Raise an error if the workspace of the device differs from the settings, or is not in metres.

    Raises
    ------
    DeviceOpenError
        States the setting to change.
    """
    if device.kind in KINDS and KINDS[device.kind] != KINDS[kind]:
        raise DeviceOpenError(
            f"{NAME}: the device {device.device_id} is a {device.kind}, with another workspace than device.kind = "
            f"{kind!r}: set device.kind={device.kind}."
        )
    if not all(math.isclose(scale, 1.0, abs_tol=1e-9) for scale in device.scale):
        raise DeviceOpenError(
            f"{NAME}: the service stretches the space of {device.device_id} (scale {device.scale}), so that its metres "
            "are none: reset its mount and its workspace transform in the Haply Hub."
        )
