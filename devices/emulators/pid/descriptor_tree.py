"""Parsed USB descriptors with the field names of the specification, as pyusb requires them."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

from devices.emulators.pid import enumeration

FULL_SPEED = 2
"""Number of this speed in libusb."""

_DEVICE = (
    "bLength bDescriptorType bcdUSB bDeviceClass bDeviceSubClass bDeviceProtocol bMaxPacketSize0 idVendor idProduct "
    "bcdDevice iManufacturer iProduct iSerialNumber bNumConfigurations"
)
_CONFIGURATION = (
    "bLength bDescriptorType wTotalLength bNumInterfaces bConfigurationValue iConfiguration bmAttributes bMaxPower"
)
_INTERFACE = (
    "bLength bDescriptorType bInterfaceNumber bAlternateSetting bNumEndpoints bInterfaceClass bInterfaceSubClass "
    "bInterfaceProtocol iInterface"
)
_ENDPOINT = "bLength bDescriptorType bEndpointAddress bmAttributes wMaxPacketSize bInterval"


def device_fields(data: bytes) -> SimpleNamespace:
    """Return the fields of the device descriptor."""
    return _named(_DEVICE, "BBHBBBBHHHBBBB", data)


def placed(data: bytes, address: int, port: int) -> SimpleNamespace:
    """Return the fields of the device descriptor, with bus address and port; there is no hub."""
    found = device_fields(data)
    found.bus, found.address, found.speed = 1, address, FULL_SPEED
    found.port_number, found.port_numbers = port, (port,)
    return found


class DescriptorTrees:
    """Part of a backend for pyusb that returns the configuration of devices with an attribute ``tree``."""

    def get_parent(self, dev: Any) -> None:
        """Return None: there is no hub."""

    def get_configuration_descriptor(self, dev: Any, config: int) -> SimpleNamespace:
        """Return the only configuration."""
        tree: SimpleNamespace = [dev.tree][config]
        return tree

    def get_interface_descriptor(self, dev: Any, intf: int, alt: int, config: int) -> SimpleNamespace:
        """Return an interface by its index."""
        interfaces: list[SimpleNamespace] = self.get_configuration_descriptor(dev, config).interfaces
        return [interfaces[intf]][alt]

    def get_endpoint_descriptor(self, dev: Any, ep: int, intf: int, alt: int, config: int) -> SimpleNamespace:
        """Return an endpoint by its index."""
        endpoints: list[SimpleNamespace] = self.get_interface_descriptor(dev, intf, alt, config).endpoints
        return endpoints[ep]


def configuration_tree(data: bytes) -> SimpleNamespace:
    """Return the configuration with its ``interfaces`` and their ``endpoints``.

    Other descriptors are in ``extra_descriptors``.
    """
    tree = node = SimpleNamespace(interfaces=[])
    while data:
        length, kind = data[0], data[1]
        piece, data = data[:length], data[length:]
        if kind == enumeration.CONFIGURATION:
            node = tree = _named(_CONFIGURATION, "BBHBBBBB", piece)
            tree.interfaces, tree.extra_descriptors = [], b""
        elif kind == enumeration.INTERFACE:
            node = _named(_INTERFACE, "9B", piece)
            node.endpoints, node.extra_descriptors = [], b""
            tree.interfaces.append(node)
        elif kind == enumeration.ENDPOINT:
            endpoint = _named(_ENDPOINT, "BBBBHB", piece)
            endpoint.bRefresh = endpoint.bSynchAddress = 0
            endpoint.extra_descriptors = b""
            node.endpoints.append(endpoint)
        else:
            node.extra_descriptors += piece
    return tree


def _named(names: str, form: str, data: bytes) -> SimpleNamespace:
    return SimpleNamespace(**dict(zip(names.split(), struct.unpack("<" + form, data), strict=True)))
