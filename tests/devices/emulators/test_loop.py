"""The event loop of an emulated far end, and the force sensors that it serves."""

import os
import select
import socket
import struct
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from devices.emulators import loop as loops
from devices.emulators.loop import MEMORY, STALL, Loop
from devices.emulators.optoforce.port import OptoForceUnit
from devices.emulators.rdt.box import RdtBox

PATIENCE = 30.0
WRENCH = (1.0, -2.0, 3.0, 0.1, -0.2, 0.3)


class Work:
    """Something to do, again and again."""

    def __init__(self, pause: float = 0.0, do: Callable[[float], None] = lambda _: None) -> None:
        self._pause, self._do = pause, do
        self.served: list[float] = []

    def pause(self, now: float) -> float:
        return self._pause

    def serve(self, now: float) -> None:
        self.served.append(now)
        self._do(now)


def passes(count: int) -> Callable[[], bool]:
    """Be done after so many passes."""
    left = iter([False] * count)
    return lambda: next(left, True)


# --- the loop --------------------------------------------------------------------------------------------------------


def test_files_are_served_when_something_comes_and_sources_in_every_pass() -> None:
    loop, come = Loop(), []
    here, there = socket.socketpair()
    with here, there:
        loop.watch(here, lambda: come.append(here.recv(16)))
        work = Work()
        loop.sources.append(work)
        there.send(b"first")
        loop.run(passes(3))
        assert come == [b"first"]
        assert len(work.served) == 3
        loop.forget(here)
        there.send(b"second")
        loop.run(passes(3))
        assert come == [b"first"]


def test_it_waits_no_longer_than_its_sources_do() -> None:
    loop = Loop()
    fast, slow = Work(2e-3), Work(10.0)
    loop.sources += [fast, slow]
    start = time.monotonic()
    loop.run(passes(20))
    assert 0.04 <= time.monotonic() - start < PATIENCE


def test_a_file_that_a_call_has_closed_is_not_served() -> None:
    loop, come = Loop(), []
    pairs = [socket.socketpair() for _ in range(2)]

    def end(number: int) -> None:
        come.append(number)
        for here, _ in pairs:
            loop.forget(here)

    for number, (here, there) in enumerate(pairs):
        loop.watch(here, lambda number=number: end(number))
        there.send(b"x")
    loop.run(passes(2))
    assert len(come) == 1
    for pair in pairs:
        for end_of_it in pair:
            end_of_it.close()


def test_those_for_whom_there_is_no_room_are_sent_away() -> None:
    loop, inside = Loop(), []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        loop.welcome(listener, lambda wire: len(inside) < 1 and not inside.append(wire))
        clients = [socket.create_connection(listener.getsockname(), PATIENCE) for _ in range(2)]
        latest = time.monotonic() + PATIENCE
        loop.run(lambda: bool(select.select([clients[1]], [], [], 0.0)[0]) or time.monotonic() > latest)
        assert clients[1].recv(1) == b""
        assert not select.select([clients[0]], [], [], 0.0)[0]
    for wire in (*clients, *inside):
        wire.close()


@pytest.mark.parametrize(("lost", "worked", "told"), [(0.1, 0.0, 0.1), (0.0, 0.1, 0.0), (STALL / 2, 0.1, 0.0)])
def test_time_that_was_neither_waited_for_nor_used_is_a_stall(
    monkeypatch: pytest.MonkeyPatch, lost: float, worked: float, told: float
) -> None:
    own = SimpleNamespace(wall=0.0, used=0.0)
    monkeypatch.setattr(loops, "time", SimpleNamespace(monotonic=lambda: own.wall, thread_time=lambda: own.used))
    loop = Loop()

    def go_by(_: float) -> None:
        own.wall += lost + worked
        own.used += worked

    loop.sources.append(Work(0.0, go_by))
    loop.run(passes(2))
    assert loop.stalled() == pytest.approx(told)
    own.wall += 0.9 * MEMORY - lost - worked
    assert loop.stalled() == pytest.approx(told)
    own.wall += 0.2 * MEMORY
    assert loop.stalled() == 0.0


# --- sensors in it ---------------------------------------------------------------------------------------------------


def test_a_sensor_on_the_network_streams_from_a_loop() -> None:
    loop = Loop()
    box = RdtBox(lambda: WRENCH)
    box.program.settings["comrdtrate"] = "1000"
    host = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    host.settimeout(PATIENCE)
    with host, box.within(loop), loop.in_thread("sensor"):
        host.sendto(bytes.fromhex("1234 0002 00000000"), (box.address["address"], box.address["port"]))
        records = [struct.unpack(">3I6i", host.recv(64)) for _ in range(50)]
        host.sendto(bytes.fromhex("1234 0000 00000000"), (box.address["address"], box.address["port"]))
    assert [record[0] for record in records] == list(range(1, 51))
    assert records[-1][3:] == tuple(round(value * 1e6) for value in WRENCH)


def test_a_sensor_at_a_serial_port_streams_from_a_loop() -> None:
    loop = Loop()
    unit = OptoForceUnit(lambda: WRENCH, (10.0, 10.0, 10.0))
    with unit.within(loop), loop.in_thread("sensor"):
        port = os.open(unit.port, os.O_RDWR | os.O_NOCTTY)
        request = bytes.fromhex("aa 00 32 03 01 00 00")
        os.write(port, request + struct.pack(">H", sum(request)))
        came, told, latest = b"", -1, time.monotonic() + PATIENCE
        while (told < 0 or len(came) < told + 7 + 16 * 5) and time.monotonic() < latest:
            if select.select([port], [], [], PATIENCE)[0]:
                came += os.read(port, 256)
            told = came.find(bytes.fromhex("aa 00 50 01 00 00 fb"))  # behind what it sent of itself before
        os.close(port)
    assert told >= 0
    frames = [came[start : start + 16] for start in range(told + 7, told + 7 + 16 * 5, 16)]
    numbers: list[Any] = [struct.unpack(">HH3h", frame[4:14]) for frame in frames]
    assert [number[0] - numbers[0][0] for number in numbers] == [0, 1, 2, 3, 4]
    assert {number[2:] for number in numbers} == {(10, -20, 30)}
