"""The two pairs of bulk endpoints of the emulated drive: the native protocol, and text on its serial port."""

from __future__ import annotations

from collections.abc import Set

from devices.emulators.odrive.firmware import Firmware
from devices.emulators.odrive.text import TextProtocol

PACKET = 64
"""No packet is longer [byte]."""

WAITING = 510
"""So much text waits to be read at most [byte]; what is more is lost."""

_TABLE = b"\0\x80"
_HEADER = 2


class NativePipe:
    """Endpoints of the native protocol: one request, one answer. It takes no request while an answer waits.

    Parameters
    ----------
    inside : Firmware
        The drive.
    """

    def __init__(self, inside: Firmware) -> None:
        self._inside = inside
        self._answer: bytes | None = None

    @property
    def busy(self) -> bool:
        """Whether an answer waits to be read: as long as it does, no further request is taken."""
        return self._answer is not None

    def out(self, packet: bytes, faults: Set[str]) -> None:
        """Take a packet."""
        if "wrong-crc" in faults and packet[2:4] != _TABLE:
            return
        answer = self._inside.handle(packet)
        if answer is not None and "lost-answer" not in faults:
            self._answer = answer[:_HEADER] if "short" in faults else answer

    def poll_in(self) -> bytes | None:
        """Return the answer that waits, if there is one."""
        answer, self._answer = self._answer, None
        return answer

    def reset(self) -> None:
        """Forget what waits to be read."""
        self._answer = None

    def switch_on(self) -> None:
        """Begin anew."""
        self._answer = None


class TextPipe:
    """Endpoints of the serial port. It always takes what is written.

    The first answer goes into a packet at once; what comes meanwhile waits, and goes into the next one when that was
    read. Two traps of firmware 0.5.6 are here, too. If 64 bytes or more wait then, they do not fit into a packet, and
    nothing is ever sent again until the supply was off. And what waits survives a reset of the port: it comes in front
    of the next answer.

    Parameters
    ----------
    inside : Firmware
        The drive.
    """

    busy = False

    def __init__(self, inside: Firmware) -> None:
        self._protocol = TextProtocol(inside)
        self._waiting = b""
        self._under_way = 0

    def out(self, packet: bytes, faults: Set[str]) -> None:
        """Take a packet, or several at once."""
        for answer in self._protocol.take(packet):
            if "lost-answer" not in faults:
                whole = b"\r\n" if "short" in faults else answer
                self._waiting += whole[: WAITING - len(self._waiting)]
                self._send()

    def poll_in(self) -> bytes | None:
        """Return the packet that is under way, if there is one."""
        if not self._under_way:
            return None
        packet, self._waiting = self._waiting[: self._under_way], self._waiting[self._under_way :]
        self._under_way = 0
        self._send()
        return packet

    def _send(self) -> None:
        """Make a packet of all that waits, unless one is under way or it is too much for one."""
        if not self._under_way and len(self._waiting) < PACKET:
            self._under_way = len(self._waiting)

    def reset(self) -> None:
        """Forget what has come of a line, and that a packet was under way."""
        self._protocol.restart()
        self._under_way = 0

    def switch_on(self) -> None:
        """Begin anew."""
        self.reset()
        self._waiting = b""
