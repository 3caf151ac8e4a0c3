"""Shows an emulated device to real libusb: a USB device file system in a folder, served to umockdev's preload library.

In a program that was started with ``LD_PRELOAD=libumockdev-preload.so.0`` and ``UMOCKDEV_DIR`` set, ``/sys`` and the
files of ``/dev`` that exist below the folder are the folder's, and an ``ioctl`` on one of them goes to a socket of the
same name below ``ioctl``. The messages are three ``unsigned long``: command, first and second argument. While a call is
under way the server may read and write the caller's memory. What the calls mean is in linux/usbdevice_fs.h.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from devices.emulators.pid.firmware import Firmware
from devices.emulators.pid.stick import EmulatedStick
from tests.system.usb.bus import CLEAR_HALT, FRAME, INTERFACE, TO_HOST, Bus, Transfer, descriptors

BUS_NUMBER, DEVICE_NUMBER = 1, 2
NODE = f"bus/usb/{BUS_NUMBER:03}/{DEVICE_NUMBER:03}"
PORT = f"{BUS_NUMBER}-1"
DEVICE = f"sys/devices/pci0000:00/0000:00:14.0/usb{BUS_NUMBER}/{PORT}"
LISTED = f"sys/bus/usb/devices/{PORT}"

IOCTL, DONE, READ_MEMORY, WRITE_MEMORY = 1, 3, 5, 6
_MESSAGE = struct.Struct("@3L")
_TRANSFER = struct.Struct("@BBiIPiiiiIIP")
_STATUS_AT, _LENGTH_AT = 4, 28
_CONTROL_TYPE = 2
HID_CLASS = 3

CAPABILITIES = 0x01 | 0x04 | 0x10
"""Zero packets, transfers of any length, transfers can be collected after the device has gone."""

USBHID, USBFS = b"usbhid", b"usbfs"


class Refused(Exception):
    """A call fails with this number."""

    def __init__(self, number: int) -> None:
        super().__init__(os.strerror(number))
        self.number = number


class UsbDeviceFiles:
    """A stick on a USB of its own, below `folder`; its HID interface begins in the hands of the kernel's driver.

    `make_bus` is the wire it gets.

    Attributes
    ----------
    bus : Bus
        The wire, for faults.
    drivers : dict
        Number of an interface to the driver that has it.
    """

    def __init__(self, folder: Path, stick: EmulatedStick, make_bus: Callable[[EmulatedStick], Bus] = Bus) -> None:
        self._folder = folder
        self._make_bus = make_bus
        self._stick = stick
        self.plug()
        self._listener = _listen(folder / "ioctl" / "dev" / NODE)
        threading.Thread(target=self._accept, daemon=True).start()

    def plug(self) -> None:
        """Put the stick in; the kernel's driver takes it, and it has a wire of its own."""
        self.drivers = dict.fromkeys(_hid_interfaces(self._stick.firmware.configuration_descriptor), USBHID)
        self.bus = self._make_bus(self._stick)
        _describe(self._folder, self._stick.firmware)

    def unplug(self) -> None:
        """Pull it out; its files go, too."""
        (self._folder / LISTED).unlink()
        shutil.rmtree(self._folder / DEVICE)
        (self._folder / "dev" / NODE).unlink()
        self.bus.disconnect()

    @property
    def bound(self) -> bool:
        """Whether the kernel's driver has the stick."""
        return USBHID in self.drivers.values()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=_OpenFile(self, connection).serve, daemon=True).start()


class _OpenFile:
    """What a program that has opened the device does with it."""

    def __init__(self, files: UsbDeviceFiles, connection: socket.socket) -> None:
        self._bus = files.bus
        self._drivers = files.drivers
        self._connection = connection
        self._claimed: set[int] = set()
        self._pending: dict[int, Transfer] = {}
        self._over: deque[tuple[int, int, bytes]] = deque()
        self._calls: dict[int, Callable[[int], int]] = {
            4: lambda _: 0,  # SETINTERFACE: none of them has a second setting
            8: self._driver,
            10: self._submit,
            11: self._discard,
            13: self._reap,
            15: self._claim,
            16: self._release,
            18: self._driver_call,
            20: self._reset,
            21: self._clear_halt,
            26: lambda address: self._write(address, struct.pack("@I", CAPABILITIES)),
        }

    def serve(self) -> None:
        with self._connection, suppress(ConnectionError):  # of a program that was killed
            while message := self._take(_MESSAGE.size):
                command, request, address = _MESSAGE.unpack(message)
                assert command == IOCTL, command
                result, error = self._call(request, address)
                self._connection.sendall(_MESSAGE.pack(DONE, result & 2**64 - 1, error))
        for transfer in self._pending.values():  # the file was closed
            self._bus.cancel(transfer)
        self._drop(self._claimed)

    def _call(self, request: int, address: int) -> tuple[int, int]:
        call = self._calls.get(request & 0xFF)
        if call is None:
            return -1, errno.ENOTTY
        try:
            if not self._bus.connected and call not in (self._reap, self._discard):
                raise Refused(errno.ENODEV)
            return call(address), 0
        except Refused as refusal:
            return -1, refusal.number

    # --- who has an interface

    def _claim(self, address: int) -> int:
        interface = self._number(address)
        with self._bus.lock:
            if interface in self._drivers and interface not in self._claimed:
                raise Refused(errno.EBUSY)
            self._drivers[interface] = USBFS
            self._claimed.add(interface)
        return 0

    def _release(self, address: int) -> int:
        interface = self._number(address)
        if interface not in self._claimed:
            raise Refused(errno.EINVAL)
        self._drop({interface})
        return 0

    def _drop(self, interfaces: set[int]) -> None:
        with self._bus.lock:
            for interface in tuple(interfaces):
                self._claimed.discard(interface)
                self._drivers.pop(interface, None)

    def _driver(self, address: int) -> int:
        """GETDRIVER: an interface's number, then room for a name."""
        driver = self._drivers.get(self._number(address))
        if driver is None:
            raise Refused(errno.ENODATA)
        return self._write(address + 4, driver.ljust(256, b"\0"))

    def _driver_call(self, address: int) -> int:
        """IOCTL: what is meant for the driver of an interface; here only taking it away (22) and back (23)."""
        interface, request = struct.unpack("@ii", self._read(address, 8))
        with self._bus.lock:
            driver = self._drivers.get(interface)
            if request & 0xFF == 22:
                if driver is None:
                    raise Refused(errno.ENODATA)
                del self._drivers[interface]
            elif request & 0xFF == 23:
                if driver is not None:
                    raise Refused(errno.EBUSY)
                self._drivers[interface] = USBHID
            else:
                raise Refused(errno.ENOTTY)
        return 0

    def _reset(self, _: int) -> int:
        """RESET, of the port."""
        self._bus.reset()
        return 0

    def _clear_halt(self, address: int) -> int:
        setup = struct.pack("<BBHHH", *CLEAR_HALT, self._number(address), 0)
        self._bus.submit(Transfer(0, lambda status, data: None, setup=setup))
        return 0

    # --- transfers

    def _submit(self, address: int) -> int:
        kind, endpoint, _, _, buffer, length, *_ = _TRANSFER.unpack(self._read(address, _TRANSFER.size))
        setup = self._read(buffer, 8) if kind == _CONTROL_TYPE else b""
        endpoint = 0 if setup else endpoint
        to_host = bool((setup[0] if setup else endpoint) & TO_HOST)
        start = buffer + len(setup)
        length -= len(setup)
        transfer = Transfer(
            endpoint,
            lambda status, data: self._finish(address, status, data),
            data=b"" if to_host or not length else self._read(start, length),
            length=length,
            setup=setup,
        )
        self._check(endpoint)
        with self._bus.lock:
            self._pending[address] = transfer
            self._bus.submit(transfer)
        return 0

    def _check(self, endpoint: int) -> None:
        if endpoint and self._bus.interface_of[endpoint] not in self._claimed:
            raise Refused(errno.EINVAL)

    def _finish(self, address: int, status: int, data: bytes) -> None:
        self._pending[address].data = data
        self._over.append((address, status, data))
        self._bus.lock.notify_all()

    def _discard(self, address: int) -> int:
        with self._bus.lock:
            transfer = self._pending.get(address)
            if transfer is None or not self._bus.cancel(transfer):
                raise Refused(errno.EINVAL)
            self._finish(address, -errno.ENOENT, b"")
        return 0

    def _reap(self, address: int) -> int:
        """REAPURBNDELAY. A file is always ready, so that libusb would ask without a pause: make it wait for a frame."""
        with self._bus.lock:
            if not self._over:
                self._bus.lock.wait(FRAME)
            if not self._over:
                raise Refused(errno.EAGAIN if self._bus.connected else errno.ENODEV)
            urb, status, data = self._over.popleft()
            transfer = self._pending.pop(urb)
        _, endpoint, _, _, buffer, *_ = _TRANSFER.unpack(self._read(urb, _TRANSFER.size))
        setup = len(transfer.setup)
        if (transfer.setup[0] if setup else endpoint) & TO_HOST and data:
            self._write(buffer + setup, data)
        self._write(urb + _STATUS_AT, struct.pack("@i", status))
        self._write(urb + _LENGTH_AT, struct.pack("@i", len(data)))
        return self._write(address, struct.pack("@P", urb))

    # --- the caller's memory

    def _number(self, address: int) -> int:
        return int(struct.unpack("@I", self._read(address, 4))[0])

    def _read(self, address: int, length: int) -> bytes:
        self._connection.sendall(_MESSAGE.pack(READ_MEMORY, address, length))
        return self._take(length)

    def _write(self, address: int, data: bytes) -> int:
        self._connection.sendall(_MESSAGE.pack(WRITE_MEMORY, address, len(data)) + data)
        return 0

    def _take(self, length: int) -> bytes:
        parts = bytearray()
        while len(parts) < length and (part := self._connection.recv(length - len(parts))):
            parts += part
        return bytes(parts) if len(parts) == length else b""


def _listen(path: Path) -> socket.socket:
    path.parent.mkdir(parents=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    return listener


def _describe(folder: Path, firmware: Firmware) -> None:
    """Write what the kernel would say of the device in ``/sys``, and the file by which it is opened."""
    node = folder / "dev" / NODE
    node.parent.mkdir(parents=True, exist_ok=True)
    node.touch()
    identity = folder / "dev" / ".node" / NODE.replace("/", "_")
    if not identity.is_symlink():
        identity.parent.mkdir()
        identity.symlink_to(f"189:{DEVICE_NUMBER - 1}")
    device, listed = folder / DEVICE, folder / LISTED
    device.mkdir(parents=True)
    (device / "subsystem").symlink_to("../../../../../bus/usb")  # by which libudev knows it
    listed.parent.mkdir(parents=True, exist_ok=True)
    listed.symlink_to(f"../../../{Path(DEVICE).relative_to('sys')}")
    texts = {
        "busnum": BUS_NUMBER,
        "devnum": DEVICE_NUMBER,
        "speed": 12,
        "bConfigurationValue": firmware.configuration_descriptor[5],
        "dev": f"189:{DEVICE_NUMBER - 1}",
        "uevent": f"MAJOR=189\nMINOR={DEVICE_NUMBER - 1}\nDEVNAME={NODE}\nDEVTYPE=usb_device",
    }
    for name, value in texts.items():
        (device / name).write_text(f"{value}\n")
    (device / "descriptors").write_bytes(firmware.device_descriptor + firmware.configuration_descriptor)


def _hid_interfaces(configuration: bytes) -> set[int]:
    """Return the numbers of the interfaces of the class of sticks, keyboards and mice."""
    return {entry[2] for entry in descriptors(configuration) if entry[1] == INTERFACE and entry[5] == HID_CLASS}
