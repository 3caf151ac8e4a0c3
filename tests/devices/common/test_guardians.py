"""Duties of the guardian processes after a failure of the driver, and their access to the connection."""

import os
import socket
import threading
import tty
from contextlib import suppress

import pytest

from devices.inverse3 import guardian as of_service
from devices.pantograph import guardian as of_board

ZERO, GOODBYE = b"zero.", b"goodbye"


@pytest.fixture
def line():
    """Return two connected sockets, for the guardian and for the service."""
    near, far = socket.socketpair()
    far.settimeout(10.0)
    with near, far:
        yield near, far


class Hours:
    """Clock of the guardian that advances by `step` [s] with each reading, of which there are at most 50."""

    def __init__(self, step):
        self.now, self.step, self.readings = 0.0, step, 0

    def monotonic(self):
        self.readings += 1
        assert self.readings <= 50, "it does not wait for the service"
        self.now += self.step
        return self.now


def test_service_gets_zero_forces_and_a_close_over_the_same_connection(line, monkeypatch):
    near, far = line
    monkeypatch.setattr(of_service, "time", Hours(0.0))
    heard = []

    def serve():
        while len(b"".join(heard)) < 2 * len(ZERO):
            heard.append(far.recv(100))
        far.sendall(b"the state")
        while part := far.recv(100):
            heard.append(part)
        far.close()

    far.sendall(b"an answer to the driver")
    thread = threading.Thread(target=serve)
    thread.start()
    come_to_rest = of_service.come_to_rest

    def come_to_rest_and_close(line, *frames):
        with line:
            return come_to_rest(line, *frames)

    monkeypatch.setattr(of_service, "come_to_rest", come_to_rest_and_close)
    assert of_service.prepare([str(near.detach()), ZERO.hex(), GOODBYE.hex()])() == 0
    thread.join()
    assert b"".join(heard) == ZERO + ZERO + GOODBYE


def test_service_that_never_closes_does_not_keep_the_guardian(line, monkeypatch):
    near, far = line
    monkeypatch.setattr(of_service, "time", Hours(of_service.PATIENCE / 5))

    def serve():
        heard = b""
        while GOODBYE not in heard:
            heard += far.recv(100)
        with suppress(OSError):  # the guardian has closed its end
            while True:
                far.sendall(b"one more answer")

    thread = threading.Thread(target=serve)
    thread.start()
    with near:
        of_service.come_to_rest(near, ZERO, GOODBYE)
    thread.join(timeout=10.0)
    assert not thread.is_alive()


def test_silent_service_has_not_confirmed_the_zero_force(line, monkeypatch):
    near, _ = line
    monkeypatch.setattr(of_service, "PATIENCE", 0.01)
    assert of_service.come_to_rest(near, ZERO, GOODBYE) is False


def test_board_is_asked_without_its_earlier_answers():
    board, port = os.openpty()
    try:
        tty.setraw(port)
        os.write(board, bytes(of_board.REPLY_LENGTH))
        of_board.discard_input(port)
        os.write(board, b"new")
        assert of_board.read_up_to(port, 3, 5.0) == b"new"
    finally:
        os.close(board)
        os.close(port)


def test_messages_of_the_board_are_arguments_of_its_guardian(monkeypatch):
    asked = []
    monkeypatch.setattr(of_board, "come_to_rest", lambda *words: asked.append(words) or words[0] == 7)
    assert of_board.prepare(["7", "0102", "03"])() == 0
    assert of_board.prepare(["8", "0102", "03"])() == 1
    assert asked == [(7, b"\1\2", b"\3"), (8, b"\1\2", b"\3")]
