"""Many requests under way: which answer belongs to which, and what becomes of those that come late or never."""

import queue
import struct
import time
from collections.abc import Iterator

import pytest

from devices.arm.motors.native.line import Line, wait_all
from devices.common.bus.transfers import TransferError, Trouble


class FakePipes:
    """What is written stays here; what is put is read."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.writes = 0
        self.coming: queue.Queue[bytes | TransferError] = queue.Queue()
        self.closed = False

    def write(self, *data: bytes) -> None:
        self.written.extend(data)
        self.writes += 1

    def read(self, timeout: float) -> bytes | None:
        try:
            packet = self.coming.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(packet, TransferError):
            raise packet
        return packet

    def close(self) -> None:
        self.closed = True

    def answer(self, request: bytes, data: bytes) -> None:
        self.coming.put(struct.pack("<H", struct.unpack_from("<H", request)[0] | 0x8000) + data)


@pytest.fixture
def pipes() -> FakePipes:
    return FakePipes()


@pytest.fixture
def line(pipes: FakePipes) -> Iterator[Line]:
    line = Line(pipes)  # type: ignore[arg-type]
    yield line
    line.close()
    assert pipes.closed


def test_answers_find_their_requests(line: Line, pipes: FakePipes) -> None:
    tickets = [line.ask(number, b"", 1) for number in range(1, 6)]
    assert len(pipes.written) == 5  # all of them before any answer
    for number, request in enumerate(pipes.written):
        pipes.answer(request, bytes((number,)))
    assert wait_all(line, tickets, 5.0) == [bytes((number,)) for number in range(5)]
    assert line.strays == 0


def test_what_belongs_together_is_written_at_once_and_in_order(line: Line, pipes: FakePipes) -> None:
    with line.at_once():
        line.post(7, b"x")
        tickets = [line.ask(number, b"", 1) for number in (1, 2)]
        assert not pipes.written
    line.post(8, b"y")
    assert pipes.writes == 2
    assert [struct.unpack_from("<H", packet, 2)[0] & 0x7FFF for packet in pipes.written] == [7, 1, 2, 8]
    pipes.answer(pipes.written[1], b"a")
    pipes.answer(pipes.written[2], b"b")
    assert wait_all(line, tickets, 5.0) == [b"a", b"b"]


def test_of_what_belongs_together_nothing_is_written_if_something_is_wrong(line: Line, pipes: FakePipes) -> None:
    with pytest.raises(struct.error), line.at_once():
        line.post(7, b"x")
        line.ask(1, b"", 1 << 20)
    line.post(8, b"y")
    assert len(pipes.written) == 1


def test_after_an_answer_was_lost_the_others_are_right(line: Line, pipes: FakePipes) -> None:
    tickets = [line.ask(number, b"", 1) for number in (1, 2, 3)]
    pipes.answer(pipes.written[0], b"a")
    pipes.answer(pipes.written[2], b"c")
    assert line.collect(tickets[0], 5.0) == b"a"
    assert line.collect(tickets[2], 5.0) == b"c"
    with pytest.raises(TransferError, match="does not answer") as caught:
        line.collect(tickets[1], 0.0)
    assert caught.value.trouble is Trouble.TIMEOUT


def test_a_late_answer_is_not_taken_for_one_to_a_later_request_of_the_same_number(line: Line, pipes: FakePipes) -> None:
    late = line.ask(1, b"", 4)
    with pytest.raises(TransferError):
        line.collect(late, 0.0)
    for _ in range(127):
        line.post(2, b"")
    again = line.ask(3, b"", 4)
    assert again.sequence == late.sequence
    pipes.answer(pipes.written[0], b"old.")
    pipes.answer(pipes.written[-1], b"new.")
    assert line.collect(again, 5.0) == b"new."


def test_what_nobody_asked_for_is_dropped(line: Line, pipes: FakePipes) -> None:
    packets = (b"", b"\x81", b"\x81\x80data", b"\x85\x00")
    for packet in packets:
        pipes.coming.put(packet)
    latest = time.monotonic() + 5.0
    while line.strays < len(packets) and time.monotonic() < latest:
        time.sleep(1e-3)
    assert line.strays == len(packets)
    ticket = line.ask(1, b"", 1)
    pipes.answer(pipes.written[0], b"x")
    assert line.collect(ticket, 5.0) == b"x"


def test_an_error_while_reading_reaches_all_who_wait_and_all_who_ask_later(line: Line, pipes: FakePipes) -> None:
    tickets = [line.ask(number, b"", 1) for number in (1, 2)]
    pipes.coming.put(TransferError("gone", Trouble.UNPLUGGED))
    for ticket in tickets:
        with pytest.raises(TransferError, match="gone"):
            line.collect(ticket, 5.0)
    with pytest.raises(TransferError, match="gone"):
        line.ask(3, b"", 1)
    line.post(4, b"stop")  # which may still arrive
    assert b"stop" in pipes.written[-1]


def test_patience_asks_again(line: Line, pipes: FakePipes) -> None:
    write = pipes.write

    def forgetful(packet: bytes) -> None:
        write(packet)
        if len(pipes.written) == 3:
            pipes.answer(packet, b"at last")

    pipes.write = forgetful  # type: ignore[method-assign]
    assert line.operate(7, b"", 7) == b"at last"
    assert len(pipes.written) == 3
