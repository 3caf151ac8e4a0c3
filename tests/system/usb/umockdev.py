"""Shows an emulated device to real libusb: a USB device file system in a folder, served to umockdev's library.

In a program that was started with ``LD_PRELOAD=libumockdev-preload.so.0`` and ``UMOCKDEV_DIR`` set, ``/sys`` and the
files of ``/dev`` that exist below the folder are taken from it, and an ``ioctl`` on one of them goes to a socket
of the same name below ``ioctl``. The messages are three ``unsigned long``: command, first and second argument. During a
call the server may read and write the caller's memory. The calls follow linux/usbdevice_fs.h.

``python -m tests.system.usb.umockdev PROFILE LIBRARY`` plays the scenes of a stick in such a program.
"""

from __future__ import annotations

import ctypes.util
import errno
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

from devices.emulators.child import raise_priority
from tests.processes import program
from tests.system.usb.bus import CLEAR_HALT, FRAME, INTERFACE, TO_HOST, Bus, Transfer, descriptors, take
from tests.system.usb.scenes import SCENES, other_program, packaged_libusb, play, results, staged

LIBRARY = "libumockdev-preload.so.0"
FOLDER = "UMOCKDEV_DIR"
# Timeout of a run; the results of its scenes until then count.
SECONDS = 90.0

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

# Zero packets, transfers of any length, transfers that can be reaped after the device was unplugged.
CAPABILITIES = 0x01 | 0x04 | 0x10

USBHID, USBFS = b"usbhid", b"usbfs"


class Refused(Exception):
    """A call fails with this error number."""

    def __init__(self, number):
        super().__init__(os.strerror(number))
        self.number = number


class UsbDeviceFiles:
    """A stick on a bus below `folder`; the kernel's driver has its HID interface at first.

    `make_bus` makes the wire, and `drivers` maps interfaces to the driver that has them.
    """

    def __init__(self, folder, stick, make_bus=Bus):
        self._folder = folder
        self._make_bus = make_bus
        self._stick = stick
        self.plug()
        path = folder / "ioctl" / "dev" / NODE
        path.parent.mkdir(parents=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def plug(self):
        """Plug the stick in; the kernel's driver takes it."""
        found = descriptors(self._stick.firmware.configuration_descriptor)
        self.drivers = {each[2]: USBHID for each in found if each[1] == INTERFACE and each[5] == HID_CLASS}
        self.owners: dict[int, _OpenFile] = {}
        self.bus = self._make_bus(self._stick)
        _describe(self._folder, self._stick.firmware)

    def unplug(self):
        """Unplug the stick and remove its files."""
        (self._folder / LISTED).unlink()
        shutil.rmtree(self._folder / DEVICE)
        (self._folder / "dev" / NODE).unlink()
        self.bus.disconnect()

    @property
    def bound(self):
        """Whether the kernel's driver has the stick."""
        return USBHID in self.drivers.values()

    def _accept(self):
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=_OpenFile(self, connection).serve, daemon=True).start()


class _OpenFile:
    """Serves the calls of a program that has opened the device."""

    def __init__(self, files, connection):
        self._bus = files.bus
        self._drivers = files.drivers
        self._owners = files.owners
        self._connection = connection
        self._claimed: set[int] = set()
        self._pending: dict[int, Transfer] = {}
        self._over: deque[tuple[int, int, bytes]] = deque()
        self._calls: dict[int, Callable[[int], int]] = {
            2: self._bulk,
            4: lambda _: 0,  # SETINTERFACE: no interface has a second setting
            8: self._driver,
            10: self._submit,
            11: self._discard,
            13: self._reap,
            15: self._claim,
            16: self._release,
            18: self._driver_call,
            20: lambda _: self._bus.reset() or 0,  # RESET of the port
            21: self._clear_halt,
            26: lambda address: self._write(address, struct.pack("@I", CAPABILITIES)),
        }

    def serve(self):
        with self._connection, suppress(ConnectionError):  # the program was killed
            while True:
                command, request, address = _MESSAGE.unpack(take(self._connection, _MESSAGE.size))
                assert command == IOCTL, command
                result, error = self._call(request, address)
                self._connection.sendall(_MESSAGE.pack(DONE, result & 2**64 - 1, error))
        for transfer in self._pending.values():  # the file was closed
            self._bus.cancel(transfer)
        self._drop(self._claimed)

    def _call(self, request, address):
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

    def _claim(self, address):
        interface = self._number(address)
        with self._bus.lock:
            if interface in self._drivers and interface not in self._claimed:
                raise Refused(errno.EBUSY)
            self._drivers[interface] = USBFS
            self._owners[interface] = self
            self._claimed.add(interface)
        return 0

    def _release(self, address):
        interface = self._number(address)
        if interface not in self._claimed:
            raise Refused(errno.EINVAL)
        self._drop({interface})
        return 0

    def _drop(self, interfaces):
        with self._bus.lock:
            for interface in tuple(interfaces):
                self._claimed.discard(interface)
                self._drivers.pop(interface, None)

    def lose(self, interface):
        """Cancel the transfers of an interface that another program takes."""
        self._claimed.discard(interface)
        for address, transfer in list(self._pending.items()):
            if transfer.endpoint and self._bus.interface_of[transfer.endpoint] == interface:
                if self._bus.cancel(transfer):
                    self._finish(address, -errno.ENOENT, b"")

    def _driver(self, address):
        """GETDRIVER: the number of an interface, then room for a name."""
        driver = self._drivers.get(self._number(address))
        if driver is None:
            raise Refused(errno.ENODATA)
        return self._write(address + 4, driver.ljust(256, b"\0"))

    def _driver_call(self, address):
        """IOCTL for the driver of an interface: disconnect (22) and connect (23) only."""
        interface, request = struct.unpack("@ii", self._read(address, 8))
        with self._bus.lock:
            driver = self._drivers.get(interface)
            if request & 0xFF == 22:
                if driver is None:
                    raise Refused(errno.ENODATA)
                del self._drivers[interface]
                if driver == USBFS:
                    self._owners.pop(interface).lose(interface)
            elif request & 0xFF == 23:
                if driver is not None:
                    raise Refused(errno.EBUSY)
                self._drivers[interface] = USBHID
            else:
                raise Refused(errno.ENOTTY)
        return 0

    def _clear_halt(self, address):
        setup = struct.pack("<BBHHH", *CLEAR_HALT, self._number(address), 0)
        self._bus.submit(Transfer(0, lambda status, data: None, setup=setup))
        return 0

    # --- transfers

    def _submit(self, address):
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
        if endpoint and self._bus.interface_of[endpoint] not in self._claimed:
            raise Refused(errno.EINVAL)
        with self._bus.lock:
            self._pending[address] = transfer
            self._bus.submit(transfer)
        return 0

    def _bulk(self, address):
        """BULK: a transfer that the call waits for."""
        endpoint, length, timeout, buffer = struct.unpack("@IIIP", self._read(address, 24))
        if self._bus.interface_of[endpoint] not in self._claimed:
            raise Refused(errno.EINVAL)
        ends: list[tuple[int, bytes]] = []

        def end(status, data):
            ends.append((status, data))
            self._bus.lock.notify_all()

        data = b"" if endpoint & TO_HOST else self._read(buffer, length)
        transfer = Transfer(endpoint, end, data=data, length=length)
        with self._bus.lock:
            self._bus.submit(transfer)
            if not self._bus.lock.wait_for(lambda: ends, timeout * 1e-3):
                self._bus.cancel(transfer)
                raise Refused(errno.ETIMEDOUT)
        status, found = ends[0]
        if status:
            raise Refused(-status)
        if endpoint & TO_HOST and found:
            self._write(buffer, found)
        return len(found) if endpoint & TO_HOST else length

    def _finish(self, address, status, data):
        self._pending[address].data = data
        self._over.append((address, status, data))
        self._bus.lock.notify_all()

    def _discard(self, address):
        with self._bus.lock:
            transfer = self._pending.get(address)
            if transfer is None or not self._bus.cancel(transfer):
                raise Refused(errno.EINVAL)
            self._finish(address, -errno.ENOENT, b"")
        return 0

    def _reap(self, address):
        """REAPURBNDELAY. The file is always ready and libusb would call without a pause: wait for a frame."""
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

    def _number(self, address):
        return int(struct.unpack("@I", self._read(address, 4))[0])

    def _read(self, address, length):
        self._connection.sendall(_MESSAGE.pack(READ_MEMORY, address, length))
        return take(self._connection, length)

    def _write(self, address, data):
        self._connection.sendall(_MESSAGE.pack(WRITE_MEMORY, address, len(data)) + data)
        return 0


def _describe(folder, firmware):
    """Write the files of the device in ``/sys``, and the file by which it is opened."""
    node = folder / "dev" / NODE
    node.parent.mkdir(parents=True, exist_ok=True)
    node.touch()
    identity = folder / "dev" / ".node" / NODE.replace("/", "_")
    if not identity.is_symlink():
        identity.parent.mkdir()
        identity.symlink_to(f"189:{DEVICE_NUMBER - 1}")
    device, listed = folder / DEVICE, folder / LISTED
    device.mkdir(parents=True)
    (device / "subsystem").symlink_to("../../../../../bus/usb")  # for libudev
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


# --- programs with libusb on umockdev --------------------------------------------------------------------------------


def why_not():
    """Return the reason why umockdev cannot run here; empty if it can."""
    multiarch = getattr(sys.implementation, "_multiarch", "")
    folders = ["/usr/lib", "/usr/lib64", "/usr/local/lib", f"/usr/lib/{multiarch}", f"/lib/{multiarch}"]
    if sys.platform != "linux":
        return "umockdev stands in for Linux's device files"
    if not any(Path(folder, LIBRARY).exists() for folder in folders):
        return f"{LIBRARY} is missing (Debian package umockdev)"
    return ""


def system_libusb():
    """Return the libusb of the operating system, None if it has none."""
    return ctypes.util.find_library("usb-1.0")


def repetition(request):
    """Return how often the requesting test was started; more than once after a failure."""
    return getattr(request.node, "execution_count", 1)


def run(module, *arguments):
    """Run a module with umockdev below it; return the results of its scenes and its errors."""
    with tempfile.TemporaryDirectory(prefix="usb") as folder:  # short: the path of a socket has at most 107 characters
        variables = {**os.environ, "LD_PRELOAD": LIBRARY, FOLDER: folder, "NUMBA_DISABLE_JIT": "1"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with program("-m", module, *arguments, env=variables, **pipes) as process:
            try:
                out, err = process.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
                err += f"\nended after {SECONDS:g} s"
    return results(out), err


def loaded(_):
    """Return the paths of libusb in this process."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    return sorted({line.split()[-1] for line in maps if "libusb" in line})


def main():
    raise_priority()
    profile, library = sys.argv[1:]
    folder = Path(os.environ[FOLDER])
    stage = staged(profile, folder, lambda stick: UsbDeviceFiles(folder, stick))
    with packaged_libusb() if library == "package" else nullcontext():
        play(stage, (*SCENES, other_program, loaded))


if __name__ == "__main__":
    main()
