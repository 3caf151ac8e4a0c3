"""Lines of text to a drive: whole answers out of packets of any size, late and lost ones."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.arm.motors.usb.text import LONGEST, TextLine
from devices.common.bus.transfers import TransferError, Trouble


class Script:
    """A serial port that answers what it was told to."""

    def __init__(self, *packets: bytes) -> None:
        self.packets = list(packets)
        self.written: list[bytes] = []

    def write(self, packet: bytes) -> None:
        self.written.append(packet)

    def read(self, timeout: float) -> bytes | None:
        return self.packets.pop(0) if self.packets else None

    def close(self) -> None:
        self.packets.clear()


ANSWERS = ["1.5 -0.25", "0.0 3.0", "8", "1073741824"]


def exchange(line: TextLine, last: str = ANSWERS[-1]) -> list[str]:
    return line.exchange(["f 0", "f 1", "r state", "r test_property"], last, 3, 0.2)


def test_all_lines_go_out_in_one_transfer() -> None:
    port = Script("\r\n".join([*ANSWERS, ""]).encode())
    assert exchange(TextLine(port)) == ANSWERS[:3]
    assert port.written == [b"f 0\nf 1\nr state\nr test_property\n"]


@given(st.lists(st.integers(0, 40), max_size=12), st.sampled_from(["\r\n", "\n", "\r"]))
def test_packets_may_be_cut_anywhere(cuts: list[int], end: str) -> None:
    text = "".join(answer + end for answer in ANSWERS).encode()
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    port = Script(*(text[first:last] for first, last in itertools.pairwise(places)))
    assert exchange(TextLine(port)) == ANSWERS[:3]


def test_late_answers_to_an_earlier_round_are_passed_over() -> None:
    line = TextLine(port := Script())
    with pytest.raises(TransferError) as late:
        exchange(line)
    assert late.value.trouble is Trouble.TIMEOUT
    text = "\n".join([*ANSWERS, "2.5 0.5", "1.0 1.0", "8", "1073741825", ""])
    port.packets = [text[:30].encode(), text[30:].encode()]
    assert exchange(line, "1073741825") == ["2.5 0.5", "1.0 1.0", "8"]


def test_an_answer_that_was_lost_makes_the_round_a_lost_one() -> None:
    with pytest.raises(TransferError, match="lost") as lost:
        exchange(TextLine(Script("\n".join([*ANSWERS[1:], ""]).encode())))
    assert lost.value.trouble is Trouble.TIMEOUT


def test_what_follows_the_last_answer_belongs_to_nobody() -> None:
    line = TextLine(port := Script("\n".join([*ANSWERS, "nonsense", ""]).encode()))
    assert exchange(line) == ANSWERS[:3]
    port.packets = ["\n".join([*ANSWERS[:3], "1073741825", ""]).encode()]
    assert exchange(line, "1073741825") == ANSWERS[:3]


def test_text_without_an_end_takes_no_memory() -> None:
    line = TextLine(Script(*[b"x" * 64] * 1000))
    with pytest.raises(TransferError):
        exchange(line)
    assert len(line._rest) <= LONGEST
