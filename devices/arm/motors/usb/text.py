"""Lines of text to a drive and back, at the serial port that its firmware shows on USB beside the native protocol."""

from __future__ import annotations

import time
from typing import Protocol

from devices.common.bus.transfers import TransferError, Trouble

LONGEST = 4096
"""So much text without an end of line is none [byte]."""


class Packets(Protocol):
    """What lines go through (`devices.arm.motors.usb.pipes.Pipes`)."""

    def write(self, packet: bytes) -> None:
        """Send a packet; raises `TransferError`."""
        ...

    def read(self, timeout: float) -> bytes | None:
        """Return the next packet, None if there was none for `timeout` [s]; raises `TransferError`."""
        ...

    def close(self) -> None:
        """Give it back."""
        ...


class TextLine:
    """The conversation in lines. One thread at a time may use it.

    Parameters
    ----------
    pipes : Packets
        The open serial port.
    """

    def __init__(self, pipes: Packets) -> None:
        self._pipes = pipes
        self._rest = b""

    def exchange(self, lines: list[str], last: str, count: int, timeout: float) -> list[str]:
        """Send lines in one transfer, and return the answers before the one that reads `last`.

        Answers to what was asked for earlier, which are late, come before them and are passed over.

        Parameters
        ----------
        lines : list of str
            What is sent.
        last : str
            The last answer, which no earlier one was.
        count : int
            How many answers there are before it.
        timeout : float
            How long to wait at most [s].

        Raises
        ------
        TransferError
            If they do not come, or some of them do not.
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
        """Return the lines that are whole with this packet."""
        *whole, self._rest = (self._rest + packet).replace(b"\r", b"\n").split(b"\n")
        self._rest = self._rest[-LONGEST:]
        return [line.decode("ascii", "replace") for line in whole if line]

    def close(self) -> None:
        """Give the serial port back."""
        self._pipes.close()
