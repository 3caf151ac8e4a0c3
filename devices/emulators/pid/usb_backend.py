"""Backend for pyusb with emulated sticks instead of a real bus.

It behaves like Linux: an interface belongs to the kernel's driver until that is detached, it must be claimed, and every
transfer waits for its frame. Several threads may read and write concurrently.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from types import SimpleNamespace

import usb.backend

from devices.emulators.pid.descriptor_tree import DescriptorTrees, placed
from devices.emulators.pid.stick import EmulatedStick
from devices.emulators.pid.transfers import Device, Handle, Transfers, fail

__all__ = ["EmulatedUsbBackend", "fail"]


class EmulatedUsbBackend(Transfers, DescriptorTrees, usb.backend.IBackend):  # type: ignore[misc]
    """Backend, for the argument ``backend`` of `usb.core.find`.

    Parameters
    ----------
    *sticks : EmulatedStick
        Sticks on the bus.

    Attributes
    ----------
    sticks : tuple of EmulatedStick
        Sticks on the bus.
    """

    def __init__(self, *sticks: EmulatedStick) -> None:
        super().__init__(sticks)

    # --- descriptors -------------------------------------------------------------------------------------------------

    def enumerate_devices(self) -> Iterator[Device]:
        """Yield the sticks that are plugged in."""
        for stick in self.sticks:
            with stick.lock:
                stick.catch_up()
                device = Device(stick) if stick.plugged else None
            if device is not None:
                yield device

    def get_device_descriptor(self, dev: Device) -> SimpleNamespace:
        """Return the device descriptor, with bus address and port."""
        return placed(dev.stick.firmware.device_descriptor, dev.address, self.sticks.index(dev.stick) + 1)

    # --- opening and claiming ----------------------------------------------------------------------------------------

    def open_device(self, dev: Device) -> Handle:
        """Open a device if it exists and access is permitted."""
        with dev.stick.lock:
            faults = dev.stick.catch_up()
            if not dev.connected:
                fail(errno.ENODEV)
            if "no-permission" in faults:
                fail(errno.EACCES)
        return Handle(dev)

    def close_device(self, dev_handle: Handle) -> None:
        """Close a device and release its interfaces; the kernel's driver is not reattached automatically."""
        with dev_handle.stick.lock:
            dev_handle.closed = True
            owners = dev_handle.stick.owners
            for interface in [number for number, owner in owners.items() if owner is dev_handle]:
                del owners[interface]

    def get_configuration(self, dev_handle: Handle) -> int:
        """Return the number of the configuration."""
        self.advance(dev_handle)
        return int(dev_handle.device.tree.bConfigurationValue)

    def set_configuration(self, dev_handle: Handle, config_value: int) -> None:
        """Set the configuration, which resets the device."""
        with dev_handle.stick.lock:
            self.advance(dev_handle)
            if dev_handle.stick.drivers or dev_handle.stick.owners:
                fail(errno.EBUSY)
            dev_handle.stick.firmware.power_on()

    def set_interface_altsetting(self, dev_handle: Handle, intf: int, altsetting: int) -> None:
        """Select setting 0, the only one."""
        self.advance(dev_handle)
        if altsetting:
            fail(errno.ENOENT)

    def is_kernel_driver_active(self, dev_handle: Handle, intf: int) -> bool:
        """Return True if the kernel's driver has claimed the interface."""
        self.advance(dev_handle)
        return intf in dev_handle.stick.drivers

    def detach_kernel_driver(self, dev_handle: Handle, intf: int) -> None:
        """Detach the kernel's driver from the interface."""
        with dev_handle.stick.lock:
            self.advance(dev_handle)
            if intf not in dev_handle.stick.drivers:
                fail(errno.ENOENT)
            dev_handle.stick.unbind(intf)

    def attach_kernel_driver(self, dev_handle: Handle, intf: int) -> None:
        """Attach the kernel's driver to the interface."""
        with dev_handle.stick.lock:
            self.advance(dev_handle)
            if intf in dev_handle.stick.owners or intf in dev_handle.stick.drivers:
                fail(errno.EBUSY)
            dev_handle.stick.bind(intf)

    def claim_interface(self, dev_handle: Handle, intf: int) -> None:
        """Claim the interface for this handle."""
        stick = dev_handle.stick
        with stick.lock:
            faults = self.advance(dev_handle)
            if intf > stick.profile.interface:
                fail(errno.ENOENT)
            if "busy" in faults or intf in stick.drivers or stick.owners.get(intf, dev_handle) is not dev_handle:
                fail(errno.EBUSY)
            stick.owners[intf] = dev_handle

    def release_interface(self, dev_handle: Handle, intf: int) -> None:
        """Release a claimed interface."""
        with dev_handle.stick.lock:
            self.advance(dev_handle)
            if dev_handle.stick.owners.get(intf) is not dev_handle:
                fail(errno.ENOENT)
            del dev_handle.stick.owners[intf]

    def clear_halt(self, dev_handle: Handle, ep: int) -> None:
        """Clear the halt of an endpoint."""
        with dev_handle.stick.lock:
            self.advance(dev_handle)
            dev_handle.stick.halted.discard(ep)

    def reset_device(self, dev_handle: Handle) -> None:
        """Reset the port, which resets the firmware."""
        with dev_handle.stick.lock:
            self.advance(dev_handle)
            dev_handle.stick.halted.clear()
            dev_handle.stick.firmware.power_on()
