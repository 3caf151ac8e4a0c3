"""Two pairs of bulk endpoints of the emulated drive: native protocol, and text at its serial port."""

from __future__ import annotations

from collections.abc import Set

from devices.emulators.odrive.firmware import Firmware
from devices.emulators.odrive.text import TextProtocol

PACKET = 64
"""Maximum length of a packet [byte]."""

WAITING = 510
"""Maximum length of pending text [byte]; additional text is lost."""

_TABLE = b"\0\x80"
_HEADER = 2


class NativePipe:
    """Endpoints of the native protocol: one request, one reply.

    No request is accepted while a reply is pending.

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
        """Whether a reply is pending, so that no further request is accepted."""
        return self._answer is not None

    def out(self, packet: bytes, faults: Set[str]) -> None:
        """Process a packet from the host."""
        if "wrong-crc" in faults and packet[2:4] != _TABLE:
            return
        answer = self._inside.handle(packet)
        if answer is not None and "lost-answer" not in faults:
            self._answer = answer[:_HEADER] if "short" in faults else answer

    def poll_in(self) -> bytes | None:
        """Return the pending reply, None if there is no reply."""
        answer, self._answer = self._answer, None
        return answer

    def reset(self) -> None:
        """Discard the pending reply."""
        self._answer = None

    def switch_on(self) -> None:
        """Reset."""
        self._answer = None


class TextPipe:
    """Endpoints of the serial port, which always accepts data.

    The first reply is put into a packet at once. Later replies wait, and are put into the next packet when the first
    one was read. Two defects of firmware 0.5.6 are emulated. If 64 bytes or more are waiting at that time, they do not
    fit into a packet, and nothing is sent until the supply is switched off. Waiting text survives a reset of the port
    and is sent before the next reply.

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
        """Process a packet, or several at once."""
        for answer in self._protocol.handle_packet(packet):
            if "lost-answer" not in faults:
                whole = b"\r\n" if "short" in faults else answer
                self._waiting += whole[: WAITING - len(self._waiting)]
                self._send()

    def poll_in(self) -> bytes | None:
        """Return the packet being sent, None if there is no packet."""
        if not self._under_way:
            return None
        packet, self._waiting = self._waiting[: self._under_way], self._waiting[self._under_way :]
        self._under_way = 0
        self._send()
        return packet

    def _send(self) -> None:
        """Make a packet of all waiting text, unless a packet is being sent or the text is too long."""
        if not self._under_way and len(self._waiting) < PACKET:
            self._under_way = len(self._waiting)

    def reset(self) -> None:
        """Discard an incomplete line and the state of the packet being sent."""
        self._protocol.restart()
        self._under_way = 0

    def switch_on(self) -> None:
        """Reset."""
        self.reset()
        self._waiting = b""
