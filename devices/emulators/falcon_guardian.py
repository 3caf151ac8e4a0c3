"""Guardian's access to an emulated Falcon in another process, in place of its device file.

The duty is the one of the driver's guardian (``devices/falcon/guardian.py``). This file runs isolated from the project
and may use the standard library only; `devices.emulators.usb_packets` has the layout of the packets.
"""

from __future__ import annotations

import importlib.util
import json
import socket
import struct
from collections.abc import Callable
from typing import Any

_OUT, _IN, _CALL = 0, 1, 3
_OUT_HEAD, _IN_REQUEST, _ANSWER = struct.Struct("<BIBBI"), struct.Struct("<BIBBII"), struct.Struct("<Bi")
_TIMEOUT, _PACKET, _STATUS = 50, 64, 2


class RemoteFalcon:
    """Emulated Falcon; see ``Port`` of the guardian.

    Parameters
    ----------
    address : str
        Address of the bus.
    """

    def __init__(self, address: str) -> None:
        self._wire = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._wire.connect(address)
        self._handle = self._call("open_device", self._call("devices")[0][0])

    def claim(self) -> None:
        """Claim the interface."""
        self._call("claim_interface", self._handle, 0)

    def disconnect(self) -> None:
        """Take the interface from the process that has it."""
        self._call("disconnect", self._handle, 0)

    def write(self, data: bytes) -> None:
        """Send data."""
        self._wire.send(_OUT_HEAD.pack(_OUT, self._handle, 0x02, 0, _TIMEOUT) + data)

    def read(self) -> bytes:
        """Return the data of the next packet, which may be empty."""
        return self._ask(_IN_REQUEST.pack(_IN, self._handle, 0x81, 0, _TIMEOUT, _PACKET))[_STATUS:]

    def _call(self, name: str, *arguments: Any) -> Any:
        return json.loads(self._ask(bytes((_CALL,)) + json.dumps((name, *arguments)).encode()))

    def _ask(self, request: bytes) -> bytes:
        self._wire.send(request)
        answer = self._wire.recv(1 << 16)
        if not answer:
            raise ConnectionResetError("the emulator has ended")
        _, number = _ANSWER.unpack_from(answer)
        if number:
            raise OSError(number, "refused")
        return answer[_ANSWER.size :]


def prepare(words: list[str]) -> Callable[[], int]:
    """Return the action of the guardian; `words` are the address, the packet (hex), and the file of the duty."""
    spec = importlib.util.spec_from_file_location("duty_of_falcon", words[2])
    assert spec is not None
    assert spec.loader is not None
    duty = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(duty)
    falcon, zero = RemoteFalcon(words[0]), bytes.fromhex(words[1])
    return lambda: 0 if duty.come_to_rest(falcon, zero) else 1
