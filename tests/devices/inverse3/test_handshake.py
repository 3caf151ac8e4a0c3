"""The opening handshake: the example that RFC 6455 prints, and answers that are none."""

import pytest

from devices.inverse3.handshake import (
    LARGEST_HEAD,
    Address,
    HandshakeError,
    accept_of,
    check_answer,
    parse_address,
    request,
    split_head,
)

KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
"""Both as printed in RFC 6455, section 1.3."""

ANSWER = (
    f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {ACCEPT}"
)


def test_the_key_of_the_rfc_has_the_answer_of_the_rfc():
    assert accept_of(KEY) == ACCEPT
    check_answer(ANSWER.encode(), KEY)


def test_names_of_fields_are_the_same_in_capitals():
    check_answer(ANSWER.replace("Upgrade:", "UPGRADE:").replace("websocket", "WebSocket").encode(), KEY)


@pytest.mark.parametrize(
    ("was", "becomes", "words"),
    [
        ("101 Switching Protocols", "200 OK", "answered the handshake with 'HTTP/1.1 200 OK'"),
        ("HTTP/1.1", "HTTP/1.0", "HTTP/1.0"),
        (ACCEPT, "s3pPLMBiTxaQ9kYGzzhZRbK+xOp=", "not that of a WebSocket server"),
        ("Upgrade: websocket", "Upgrade: h2c", "not that of a WebSocket server"),
        ("Connection: Upgrade", "Connection: close", "not that of a WebSocket server"),
        ("Connection: Upgrade", "Connection", "cannot be read"),
        ("Connection: Upgrade", "Upgrade: websocket", "cannot be read"),
        ("Connection:", "Sec-WebSocket-Extensions: permessage-deflate\r\nConnection:", "extension"),
    ],
)
def test_an_answer_that_is_none_is_refused(was, becomes, words):
    assert was in ANSWER
    with pytest.raises(HandshakeError, match=words):
        check_answer(ANSWER.replace(was, becomes).encode("latin-1"), KEY)


def test_what_comes_behind_the_head_is_kept():
    assert split_head(b"one\r\ntwo\r\n") is None
    assert split_head(b"one\r\ntwo\r\n\r\nthree") == (b"one\r\ntwo", b"three")
    with pytest.raises(HandshakeError, match="no end"):
        split_head(bytes(LARGEST_HEAD + 1))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ws://localhost:10001", Address("localhost", 10001, "/")),
        ("ws://[::1]:7/a?b=c", Address("::1", 7, "/a?b=c")),
        ("ws://haply", Address("haply", 80, "/")),
    ],
)
def test_addresses(text, address):
    assert parse_address(text) == address
    head = request(address, KEY).decode()
    assert head.startswith(f"GET {address.resource} HTTP/1.1\r\n") and head.endswith("\r\n\r\n")
    assert f"Sec-WebSocket-Key: {KEY.decode()}\r\n" in head


@pytest.mark.parametrize("text", ["", "localhost:10001", "wss://a:1", "http://a:1", "ws://", "ws://a:70000", "ws://a:b",
                                  "ws://u@a:1", "ws://a:1/#x", "ws://a:1/\r\nX: y", "ws://a b:1"])  # fmt: skip
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError):
        parse_address(text)


def test_an_independent_implementation_agrees():
    http11 = pytest.importorskip("websockets.http11")
    server = pytest.importorskip("websockets.server")
    protocol = server.ServerProtocol()
    protocol.receive_data(request(parse_address("ws://localhost:10001"), KEY))
    (asked,) = protocol.events_received()
    assert isinstance(asked, http11.Request)
    answer = protocol.accept(asked)
    head, _ = split_head(answer.serialize())
    check_answer(head, KEY)
