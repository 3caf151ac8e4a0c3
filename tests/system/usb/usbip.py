"""Plugs an emulated device into this machine's kernel: USB/IP over a socket pair, no tool and no network.

The kernel's module ``vhci_hcd`` is a host controller whose wire is a socket. It takes the number of an open socket, the
port, an identity and the speed in its ``attach`` file. The messages are those of the USB/IP protocol (kernel's
Documentation/usb/usbip_protocol.rst): 48 bytes of big-endian header, then what goes over the wire.
"""

from __future__ import annotations

import errno
import socket
import struct
import threading
from functools import partial
from pathlib import Path

from devices.emulators.pid.stick import EmulatedStick
from tests.processes import until
from tests.system.usb.bus import TO_HOST, Bus, Transfer

VHCI = Path("/sys/devices/platform/vhci_hcd.0")
FULL_SPEED = 2

SUBMIT, UNLINK, SUBMITTED, UNLINKED = 1, 2, 3, 4
HEADER = 48
_COMMAND = struct.Struct(">5I5i8s")
_UNLINK = struct.Struct(">6I24x")
_SUBMITTED = struct.Struct(">5I5i8x")
_UNLINKED = struct.Struct(">5Ii24x")


class VhciPlug:
    """A stick's plug and the socket of this machine that it goes into."""

    def __init__(self, stick: EmulatedStick, port: int = 0) -> None:
        self._stick = stick
        self._port = port
        self.plug()

    def plug(self) -> None:
        """Put the plug in."""
        self._socket, theirs = socket.socketpair()
        self.bus = Bus(self._stick)
        self._pending: dict[int, Transfer] = {}
        with theirs:
            until(lambda: _attach(self._port, theirs.fileno()), f"port {self._port} never became free", 20.0)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def unplug(self) -> None:
        """Pull the plug out."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(10.0)

    @property
    def bound(self) -> bool:
        """Whether the kernel's driver has the stick."""
        return any(Path("/sys/bus/usb/drivers/usbhid").glob("*:*"))

    def _serve(self) -> None:
        with self._socket:
            while header := self._take(HEADER):
                self._obey(header)
            self.bus.disconnect()

    def _obey(self, header: bytes) -> None:
        command, number, _, to_host, endpoint, _, length, *_, setup = _COMMAND.unpack(header)
        if command == UNLINK:
            self._unlink(number, _UNLINK.unpack(header)[5])
            return
        address = endpoint | TO_HOST if to_host and endpoint else endpoint
        transfer = Transfer(
            address,
            partial(self._reply, number, bool(to_host)),
            data=b"" if to_host else self._take(length),
            length=length,
            setup=setup if endpoint == 0 else b"",
        )
        with self.bus.lock:
            self._pending[number] = transfer
        self.bus.submit(transfer)

    def _reply(self, number: int, to_host: bool, status: int, data: bytes) -> None:
        self._pending.pop(number, None)
        answer = _SUBMITTED.pack(SUBMITTED, number, 0, 0, 0, status, len(data), 0, 0, 0)
        self._send(answer + data if to_host else answer)

    def _unlink(self, number: int, victim: int) -> None:
        with self.bus.lock:
            transfer = self._pending.pop(victim, None)
            taken_back = transfer is not None and self.bus.cancel(transfer)
            self._send(_UNLINKED.pack(UNLINKED, number, 0, 0, 0, -errno.ECONNRESET if taken_back else 0))

    def _send(self, message: bytes) -> None:
        try:
            self._socket.sendall(message)
        except OSError as error:  # the kernel has let go of a device that was unplugged
            if error.errno not in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.EBADF):
                raise

    def _take(self, length: int) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            try:
                part = self._socket.recv(length - len(parts))
            except ConnectionError:
                return b""
            if not part:
                return b""
            parts += part
        return bytes(parts)


def _attach(port: int, descriptor: int) -> bool:
    """Offer the socket to the controller; False while the port is still letting go of the last device."""
    try:
        (VHCI / "attach").write_text(f"{port} {descriptor} {port + 1} {FULL_SPEED}")
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EBUSY):
            return False
        raise
    return True
