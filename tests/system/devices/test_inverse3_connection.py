"""The WebSocket connection to the Haply service: other servers, broken connections and invalid frames."""

import contextlib
import socket
import threading
import time

import pytest

from devices.emulators import websocket as wire
from devices.inverse3.websocket import CloseCode, Connection, ConnectionLost, HandshakeError, parse_address
from haptics.clock import cancelled_by
from haptics.errors import OpeningCancelled
from tests.devices.inverse3.services import answering, received_head


def connected(address, patience=5.0):
    return Connection(parse_address(address), patience)


def greeted(line):
    line.sendall(wire.greeting(received_head(line)[:-4]))


def next_frame(line):
    data = bytearray()
    while (frame := wire.take_frame(data)) is None:
        part = line.recv(4096)
        assert part, "the client hung up"
        data += part
    return frame


def test_pings_are_answered_and_texts_come_in_order():
    seen = []

    def act(line):
        first = wire.frame(wire.TEXT, b"one") + wire.frame(wire.PING, b"??")
        line.sendall(wire.greeting(received_head(line)[:-4]) + first)
        seen.append(next_frame(line))
        line.sendall(
            wire.frame(wire.TEXT, b"two") + wire.frame(wire.PONG, b"unasked") + wire.frame(wire.TEXT, b"three")
        )
        seen.append(next_frame(line))
        line.sendall(wire.frame(wire.CLOSE, b""))

    with answering(act) as address:
        connection = connected(address)
        assert connection.receive(5.0) == ["one"]
        texts = []
        while len(texts) < 2:
            texts += connection.receive(5.0)
        assert texts == ["two", "three"]
        assert connection.receive(0.0) == []
        connection.close(5.0)
    assert seen == [(wire.PONG, b"??"), (wire.CLOSE, (1000).to_bytes(2, "big"))]


@pytest.mark.parametrize(
    ("sent", "code", "words"),
    [
        (bytes((0x81, 127)) + (1 << 62).to_bytes(8, "big"), CloseCode.TOO_BIG, "message of 4611686018427387904 bytes"),
        (wire.frame(wire.TEXT, b"\xff"), CloseCode.NOT_UTF8, "not UTF-8"),
        (
            wire.frame(wire.CLOSE, b"\x03\xe9gone home"),
            CloseCode.NORMAL,
            "closed the connection .code 1001, 'gone home'",
        ),
    ],
)
def test_invalid_frame_closes_the_connection_with_its_code(sent, code, words):
    told = []

    def act(line):
        greeted(line)
        line.sendall(sent)
        told.append(next_frame(line))

    with answering(act) as address:
        with pytest.raises(ConnectionLost, match=words):
            connection = connected(address)
            with contextlib.ExitStack() as stack:
                stack.callback(connection.close, 1.0)
                while True:
                    connection.receive(5.0)
    assert told == [(wire.CLOSE, int(code).to_bytes(2, "big"))]


@pytest.mark.parametrize("cut", [1, 3, 8])
def test_connection_that_ends_within_a_frame_is_lost(cut):
    def act(line):
        greeted(line)
        line.sendall(wire.frame(wire.TEXT, b"a message")[:cut])

    with answering(act) as address:
        connection = connected(address)
        with pytest.raises(ConnectionLost, match="hung up"):
            while not connection.receive(5.0):
                pass
        connection.close(0.1)


def test_connection_that_was_reset_is_lost_on_sending():
    def act(line):
        greeted(line)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes((1, 0, 0, 0, 0, 0, 0, 0)))

    with answering(act) as address:
        connection = connected(address)
        with pytest.raises(ConnectionLost, match="the connection to the service failed"):
            for _ in range(1000):
                connection.send(b"?")
                time.sleep(1e-3)
        connection.close(0.1)


def test_connection_that_takes_no_data_is_lost():
    def act(line):
        greeted(line)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.recv(1, socket.MSG_PEEK)
        time.sleep(1.0)

    with answering(act) as address:
        connection = connected(address, patience=0.3)
        with pytest.raises(ConnectionLost, match="accepts no more data"):
            for _ in range(10_000):
                connection.send(bytes(60_000))
        connection.close(0.1)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"220 mail ready\r\n\r\n", "220 mail ready"),
        (b"HTTP/1.1 1", "hung up during the handshake"),
        (bytes(20_000), "no end"),
    ],
)
def test_other_answer_to_the_handshake_is_refused(said, words):
    def act(line):
        received_head(line)
        line.sendall(said)

    with answering(act) as address, pytest.raises(HandshakeError, match=words):
        connected(address)


def test_silent_handshake_times_out_and_can_be_cancelled():
    with answering(lambda line: line.recv(1) and time.sleep(1.0)) as address:
        with pytest.raises(HandshakeError, match="did not answer the handshake"):
            connected(address, patience=0.2)
    with answering(lambda line: line.recv(1) and time.sleep(1.0)) as address:
        with pytest.raises(OpeningCancelled), cancelled_by(lambda: True):
            connected(address, patience=60.0)


def test_independent_server_understands_the_connection():
    server = pytest.importorskip("websockets.sync.server")

    def echo(link):
        for text in link:
            link.send(text * 2)

    with server.serve(echo, "127.0.0.1", 0, compression=None) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        host, port = serving.socket.getsockname()
        connection = connected(f"ws://{host}:{port}")
        for length in (1, 125, 126, 40_000, 70_000):
            connection.send(b"x" * length)
            texts = []
            while not texts:
                texts = connection.receive(5.0)
            assert texts == ["x" * 2 * length]
        connection.close(5.0)
        serving.shutdown()
        thread.join()


def test_independent_client_understands_the_emulated_service(server):
    client = pytest.importorskip("websockets.sync.client")
    with client.connect(server.address, compression=None) as link:
        assert '"session_id": 1' in link.recv()
        link.send('{"inverse3": []}')
        assert "cursor_position" in link.recv()
