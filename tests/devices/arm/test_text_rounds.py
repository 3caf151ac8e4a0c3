"""Rounds by lines of text against a drive's own words; what they say, and what is made of the answers."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.arm.motors.rounds import TextRounds
from devices.arm.motors.settings import OdriveSettings
from devices.arm.motors.usb.text import TextLine
from devices.common.bus.transfers import TransferError, Trouble

TURNS = st.floats(-2e3, 2e3)


class Endpoint:
    def __init__(self, name: str) -> None:
        self.name, self.number, self.form = name, hash(name), struct.Struct("<f")

    def pack(self, value: float) -> bytes:
        return self.form.pack(value)


class Told:
    """A drive that keeps what it was told by the native protocol, in place of the whole of it."""

    def __init__(self) -> None:
        self.posted: list[tuple[int, bytes]] = []
        self.line = SimpleNamespace(post=lambda number, payload=b"": self.posted.append((number, payload)))

    def property(self, name: str) -> Endpoint:
        return Endpoint(name)

    def function(self, name: str) -> Endpoint:
        return Endpoint(name)


class Port:
    """Answers in the words of the firmware; `lines` is all it was told."""

    def __init__(self, estimates: tuple[tuple[float, float], ...] = ((1.25, 0.5), (-3.0, 0.0))) -> None:
        self.estimates, self.lines, self.kept, self.out = estimates, [], "0", b""
        self.broken: dict[str, str] = {}

    def write(self, packet: bytes) -> None:
        for line in packet.decode().splitlines():
            self.lines.append(line)
            answer = self.answer(line.split())
            if answer is not None:
                self.out += f"{self.broken.get(line.split()[0], answer)}\r\n".encode()

    def answer(self, words: list[str]) -> str | None:
        match words:
            case ["f", axis]:
                return "{:f} {:f}".format(*self.estimates[int(axis)])
            case ["r", "test_property"]:
                return self.kept
            case ["r", name]:
                return "8" if name.endswith("state") else "0"
            case ["w", "test_property", value]:
                self.kept = value
        return None

    def read(self, timeout: float) -> bytes | None:
        found, self.out = self.out[:64], self.out[64:]
        return found or None

    def close(self) -> None:
        self.out = b""


def rounds(port: Port, drive: Told | None = None) -> TextRounds:
    any_drive: Any = drive or Told()
    return TextRounds(any_drive, OdriveSettings(), TextLine(port))


def test_a_round_gives_positions_speeds_and_each_state_in_turn() -> None:
    one = rounds(Port())
    answers = [one.play((0.0,) * 6, alive=True) for _ in range(4)]
    assert {answer.estimates for answer in answers} == {(1.25, -3.0, 0.5, 0.0)}
    assert {(answer.name, answer.value) for answer in answers} == {
        *((f"axis{axis}.current_state", 8) for axis in (0, 1)),
        *((f"axis{axis}.error", 0) for axis in (0, 1)),
    }


@given(st.tuples(TURNS, TURNS, TURNS, TURNS, TURNS, TURNS))
def test_the_drive_is_told_the_very_numbers_that_its_own_have_room_for(command: tuple[float, ...]) -> None:
    port = Port()
    rounds(port).play(command, alive=True)
    for axis in (0, 1):
        words = next(line.split() for line in port.lines if line.startswith(f"p {axis} "))
        sent = [struct.pack("<f", float(word)) for word in words[2:]]
        assert sent == [struct.pack("<f", command[place + axis]) for place in (0, 2, 4)]


def test_when_commands_stay_out_nothing_feeds_the_watchdogs_and_the_motors_stand_still() -> None:
    port, drive = Port(), Told()
    one = rounds(port, drive)
    one.play((1.0, 2.0, 3.0, 4.0, 0.5, 0.5), alive=True)
    assert drive.posted == []
    port.lines.clear()
    one.play((1.0, 2.0, 3.0, 4.0, 0.5, 0.5), alive=False)
    assert not [line for line in port.lines if line.startswith("p")]
    told = dict(drive.posted)
    for axis, position in ((0, 1.0), (1, 2.0)):
        name = f"axis{axis}.controller.input"
        assert told[hash(f"{name}_pos")] == struct.pack("<f", position)
        assert told[hash(f"{name}_vel")] == told[hash(f"{name}_torque")] == struct.pack("<f", 0.0)
        assert hash(f"axis{axis}.watchdog_feed") not in told


@pytest.mark.parametrize(
    ("kind", "answer"), [("f", "invalid command format"), ("f", "1.0"), ("r", "invalid property"), ("r", "-1")]
)
def test_an_answer_that_is_none_is_a_lost_one(kind: str, answer: str) -> None:
    port = Port()
    port.broken[kind] = answer
    with pytest.raises(TransferError) as found:
        rounds(port).play((0.0,) * 6, alive=True)
    assert found.value.trouble is Trouble.TIMEOUT


def test_a_round_after_a_lost_one_takes_its_own_answers() -> None:
    port = Port()
    one = rounds(port)
    silent, port.read = port.read, lambda timeout: None
    with pytest.raises(TransferError):
        one.play((0.0,) * 6, alive=True)
    port.read, port.estimates = silent, ((7.0, 0.0), (8.0, 0.0))
    one.forget()
    assert one.play((0.0,) * 6, alive=True).estimates[:2] == (7.0, 8.0)
