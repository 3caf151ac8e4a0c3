"""Event loop of emulated devices, in virtual time."""

import itertools
import select
import socket

import pytest

from devices.emulators import loop as loops
from devices.emulators.loop import MEMORY, STALL, Loop


class VirtualTime:
    """Time of an event loop that advances only while the loop waits, or by hand."""

    def __init__(self):
        self.wall = self.used = 0.0

    def monotonic(self):
        return self.wall

    def thread_time(self):
        return self.used

    def select(self, readable, writable, exceptional, pause):
        ready = select.select(readable, (), (), 0.0)
        self.wall += 0.0 if ready[0] else pause
        return ready


@pytest.fixture(autouse=True)
def now(monkeypatch):
    virtual = VirtualTime()
    monkeypatch.setattr(loops, "time", virtual)
    monkeypatch.setattr(loops, "select", virtual)
    return virtual


def passes(count):
    """Return a stop condition that is true after `count` passes."""
    left = iter([False] * count)
    return lambda: next(left, True)


def test_loop_serves_ready_files_and_all_sources():
    loop, come = Loop(), []
    here, there = socket.socketpair()
    with here, there:
        loop.files[here] = lambda: come.append(here.recv(16))
        served = []
        loop.sources.append((lambda _: 0.0, served.append))
        there.send(b"first")
        loop.run(passes(3))
        assert come == [b"first"]
        assert len(served) == 3
        del loop.files[here]
        there.send(b"second")
        loop.run(passes(3))
        assert come == [b"first"]


def test_loop_waits_for_its_fastest_source(now):
    loop = Loop()
    loop.sources += [(lambda _, pause=pause: pause, lambda _: None) for pause in (2e-3, 10.0)]
    loop.run(passes(20))
    assert now.wall == pytest.approx(0.04)


def test_loop_skips_files_that_were_closed():
    loop, come = Loop(), []
    pairs = [socket.socketpair() for _ in range(2)]

    def end():
        come.append(True)
        for here, _ in pairs:
            del loop.files[here]

    for here, there in pairs:
        loop.files[here] = end
        there.send(b"x")
    loop.run(passes(2))
    assert len(come) == 1
    for wire in itertools.chain(*pairs):
        wire.close()


def test_loop_closes_refused_connections():
    loop, inside = Loop(), []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        loop.accept(listener, lambda wire: len(inside) < 1 and not inside.append(wire))
        clients = [socket.create_connection(listener.getsockname(), 30.0) for _ in range(2)]
        loop.run(passes(3))
        assert clients[1].recv(1) == b""
        assert not select.select([clients[0]], [], [], 0.0)[0]
    for wire in (*clients, *inside):
        wire.close()


@pytest.mark.parametrize(("lost", "worked", "expected"), [(0.1, 0.0, 0.1), (0.0, 0.1, 0.0), (STALL / 2, 0.1, 0.0)])
def test_loop_detects_stalls(now, lost, worked, expected):
    loop = Loop()

    def go_by(_):
        now.wall += lost + worked
        now.used += worked

    loop.sources.append((lambda _: 0.0, go_by))
    loop.run(passes(2))
    assert loop.stalled() == pytest.approx(expected)
    now.wall += 0.9 * MEMORY - lost - worked
    assert loop.stalled() == pytest.approx(expected)
    now.wall += 0.2 * MEMORY
    assert loop.stalled() == 0.0
