r"""Text protocol of the emulated drive, which firmware 0.5 provides at its serial port.

Emulated properties of firmware 0.5.6:

- A line ends with ``\n``, ``\r`` or ``!``; after ``\r\n`` there is an empty line, which is an unknown command.
- The receive buffer holds 256 bytes. A line that fills it is dropped, up to its end.
- ``*NN`` after a command is the exclusive or of all bytes before it; a line with a wrong checksum is dropped silently.
  ``;`` begins a comment.
- ``p`` feeds the axis' watchdog; omitted arguments leave their values unchanged.
- ``r`` replies with nine characters at most: numbers are truncated, not rounded.
- An invalid value for a property, and a write to a read-only property, are ``not implemented``.

Of the commands, those of the driver are emulated: ``p``, ``f``, ``r`` and ``w``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from devices.emulators.odrive.axis import POSITION_CONTROL, Axis
from devices.emulators.odrive.endpoints import Row
from devices.emulators.odrive.firmware import Firmware, single

RECEIVE = 256
"""Size of the receive buffer, which limits the length of a line [byte]."""

LONGEST_ANSWER = 63
"""Maximum length of a reply with its line end; longer replies are truncated [byte]."""

_SHOWN = 9
_ENDS = re.compile(rb"[\r\n!]")
_LARGEST = 1 << 32
_FORMATS = {
    "u": re.compile(r"\s*([+-]?\d+)"),
    "i": re.compile(r"\s*([+-]?\d+)"),
    "f": re.compile(r"\s*([+-]?(?:nan|inf(?:inity)?|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?))", re.IGNORECASE),
    "s": re.compile(r"\s*(\S{1,255})"),
}
_FORMAT, _UNKNOWN = "invalid command format", "unknown command"
_PROPERTY, _REFUSED = "invalid property", "not implemented"
_INPUTS = "controller.input_pos", "controller.input_vel", "controller.input_torque"


def scan(text: str, kinds: str) -> list[Any]:
    """Return the values at the beginning of `text`, like C's ``sscanf``: as many as match, in order.

    Parameters
    ----------
    text : str
        Text to parse.
    kinds : str
        One letter for each value: ``u`` and ``i`` integers, ``f`` a number, ``s`` a word.
    """
    found: list[Any] = []
    place = 0
    for kind in kinds:
        match = _FORMATS[kind].match(text, place)
        if match is None:
            break
        place, word = match.end(), match[1]
        found.append(word if kind == "s" else single(float(word)) if kind == "f" else int(word))
        if kind == "u":
            found[-1] %= _LARGEST
    return found


def checksum(text: bytes) -> int:
    """Return the exclusive or of all bytes."""
    return functools.reduce(lambda sofar, byte: sofar ^ byte, text, 0)


class Refused(Exception):
    """The reply to a command that is not executed."""


@dataclass
class TextProtocol:
    """Command interpreter of the drive.

    Parameters
    ----------
    inside : Firmware
        The drive.
    """

    inside: Firmware
    _received: bytes = b""
    _skipping: bool = False

    def handle_packet(self, packet: bytes) -> Iterator[bytes]:
        """Process a packet and execute the lines that are complete; yield replies."""
        for start in range(0, len(packet), RECEIVE):
            self._received += packet[start : start + RECEIVE]
            *lines, self._received = _ENDS.split(self._received)
            for line in lines:
                if not self._skipping:
                    yield from self._answers(line)
                self._skipping = False
            if len(self._received) >= RECEIVE:
                self._received, self._skipping = b"", True

    def _answers(self, line: bytes) -> Iterator[bytes]:
        """Execute a line; yield its reply with the line end, if it has one."""
        line = line.partition(b";")[0]
        command, star, given = line.partition(b"*")
        if star and scan(given.decode("latin-1"), "u") != [checksum(command)]:
            return
        words = command.decode("latin-1")
        try:
            answer = self._execute(words[:1], words[1:])
        except Refused as error:
            answer = str(error)
        if answer:
            summed = f"*{checksum(answer.encode())}" if star else ""
            yield f"{answer}{summed}\r\n".encode()[:LONGEST_ANSWER]

    def _scan(self, text: str, kinds: str, least: int) -> tuple[Axis, list[Any]]:
        """Return the axis whose number is the first argument, and the other arguments."""
        found = scan(text, kinds)
        if len(found) < least:
            raise Refused(_FORMAT)
        if found[0] >= len(self.inside.axes):
            raise Refused(f"invalid motor {found[0]}")
        return self.inside.axes[found[0]], found[1:]

    def _property(self, text: str) -> tuple[Row, list[str]]:
        """Return the property that the first argument names, and the other argument, if any."""
        found = scan(text, "ss")
        row = self.inside.named.get(found[0]) if found else None
        if row is None:
            raise Refused(_PROPERTY if found else _FORMAT)
        return row, found[1:]

    def _execute(self, command: str, rest: str) -> str:
        """Execute a command with the arguments in `rest`; return its reply, empty for none."""
        if command == "p":
            axis, found = self._scan(rest, "ufff", 2)
            axis.values["controller.config.control_mode"] = POSITION_CONTROL
            axis.values.update(zip(_INPUTS, found, strict=False))
            axis.feed()
        elif command == "f":
            axis, _ = self._scan(rest, "u", 1)
            return " ".join(f"{single(axis.values[f'encoder.{name}_estimate']):f}" for name in ("pos", "vel"))
        elif command == "r":
            row, _ = self._property(rest)
            value = self.inside.read(row)
            return (f"{value:f}" if row.kind == "float" else f"{value:d}")[:_SHOWN]
        elif command == "w":
            row, given = self._property(rest)
            values = scan(given[0] if given else "", "f" if row.kind == "float" else "i")
            if not values or not row.writable:
                return _REFUSED
            self.inside.write(row, values[0])
        else:
            return _UNKNOWN
        return ""
