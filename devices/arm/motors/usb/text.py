"""Exchange of text lines with a drive over its serial port, an alternative to its native protocol."""

from __future__ import annotations

import time
from typing import Protocol

from devices.common.bus import TransferError, Trouble

LONGEST = 4096
"""Maximum length of a line; longer data are discarded [byte]."""


class Packets(Protocol):
    """Transport of the lines (`devices.arm.motors.usb.pipes.Pipes`)."""

    def write(self, packet: bytes) -> None:
        """Send a packet; raise `TransferError` on failure."""
        ...

    def read(self, timeout: float) -> bytes | None:
        """Return the next packet, None after `timeout` [s]; raise `TransferError` on failure."""
        ...

    def close(self) -> None:
        """Close the transport."""
        ...


class TextLine:
    """Exchange of lines. Only one thread at a time may use it.

    Parameters
    ----------
    pipes : Packets
        The open serial port.
    """

    def __init__(self, pipes: Packets) -> None:
        self._pipes = pipes
        self._rest = b""

    def exchange(self, lines: list[str], last: str, count: int, timeout: float) -> list[str]:
        """Send lines in one transfer, and return the replies before the reply `last`.

        Late replies to earlier requests arrive before them and are skipped.

        Parameters
        ----------
        lines : list of str
            Lines to send.
        last : str
            Last reply, which must differ from all earlier replies.
        count : int
            Number of replies before it.
        timeout : float
            Timeout [s].

        Raises
        ------
        TransferError
            If a reply is missing.
        """
        self._pipes.write("".join(f"{line}\n" for line in lines).encode("ascii"))
        latest = time.perf_counter() + timeout
        answers: list[str] = []
        while not answers or answers[-1] != last:
            left = latest - time.perf_counter()
            packet = self._pipes.read(left) if left > 0.0 else None
            if packet is None:
                raise TransferError("the drive does not answer at its serial port.", Trouble.TIMEOUT)
            answers += self._lines(packet)
            if last in answers:
                del answers[answers.index(last) + 1 :]
        found = answers[-1 - count : -1]
        if len(found) < count:
            raise TransferError("an answer of the drive at its serial port was lost.", Trouble.TIMEOUT)
        return found

    def _lines(self, packet: bytes) -> list[str]:
        """Return the lines that are complete with this packet."""
        *whole, self._rest = (self._rest + packet).replace(b"\r", b"\n").split(b"\n")
        self._rest = self._rest[-LONGEST:]
        return [line.decode("ascii", "replace") for line in whole if line]

    def close(self) -> None:
        """Close the serial port."""
        self._pipes.close()
