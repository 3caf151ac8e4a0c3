"""Frames: the examples that RFC 6455 prints, an independent implementation, and what a server may not send."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.emulators.inverse3 import wire
from devices.inverse3.frames import (
    LARGEST,
    CloseCode,
    FrameError,
    FrameReader,
    Message,
    Opcode,
    close_payload,
    close_reason,
    encode,
    text_of,
)


def read(data, largest=LARGEST):
    return list(FrameReader(largest).feed(data))


# --- what is printed in RFC 6455, section 5.7 -------------------------------------------------------------------------


def test_the_masked_hello_of_the_rfc_is_sent():
    mask = bytes.fromhex("37fa213d")
    assert encode(Opcode.TEXT, b"Hello", mask).hex() == "818537fa213d7f9f4d5158"


def test_the_masked_pong_of_the_rfc_is_sent():
    mask = bytes.fromhex("37fa213d")
    assert encode(Opcode.PONG, b"Hello", mask).hex() == "8a8537fa213d7f9f4d5158"


@pytest.mark.parametrize(
    ("data", "messages"),
    [
        ("810548656c6c6f", [Message(Opcode.TEXT, b"Hello")]),
        ("010348656c" "80026c6f", [Message(Opcode.TEXT, b"Hello")]),
        ("890548656c6c6f", [Message(Opcode.PING, b"Hello")]),
        ("817e0100" + "2a" * 256, [Message(Opcode.TEXT, b"*" * 256)]),
        ("817f0000000000010000" + "2a" * 65536, [Message(Opcode.TEXT, b"*" * 65536)]),
    ],
)  # fmt: skip
def test_the_frames_of_the_rfc_are_understood(data, messages):
    assert read(bytes.fromhex(data)) == messages


@pytest.mark.parametrize(("length", "head"), [(125, "81fd"), (126, "81fe007e"), (65535, "81feffff"),
                                              (65536, "81ff0000000000010000")])  # fmt: skip
def test_every_length_has_its_shortest_form(length, head):
    frame = encode(Opcode.TEXT, bytes(length), b"abcd")
    assert frame.hex().startswith(head)
    assert len(frame) == len(head) // 2 + 4 + length


# --- the other side ---------------------------------------------------------------------------------------------------


@given(st.binary(max_size=700), st.binary(min_size=4, max_size=4))
def test_what_is_sent_is_what_the_emulated_server_takes(payload, mask):
    data = bytearray(encode(Opcode.TEXT, payload, mask) + b"more")
    assert wire.take_frame(data) == (wire.TEXT, payload)
    assert data == b"more"


@given(st.lists(st.text(max_size=200), max_size=5), st.data())
def test_messages_are_whole_however_they_are_cut(texts, data):
    stream = b"".join(wire.frame(wire.TEXT, text.encode()) + wire.frame(wire.PING, b"?") for text in texts)
    reader, found = FrameReader(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += reader.feed(stream[:size])
        stream = stream[size:]
    assert [text_of(message) for message in found if message.opcode == Opcode.TEXT] == texts
    assert sum(message.opcode == Opcode.PING for message in found) == len(texts)


@pytest.mark.parametrize("length", [0, 1, 125, 126, 700, 65535, 65536])
def test_an_independent_implementation_agrees(length):
    frames = pytest.importorskip("websockets.frames")
    streams = pytest.importorskip("websockets.streams")

    def run(generator):
        try:
            while True:
                next(generator)
        except StopIteration as end:
            return end.value

    payload = bytes(k * 7 % 251 for k in range(length))
    stream = streams.StreamReader()
    stream.feed_data(encode(Opcode.TEXT, payload, b"\x01\x80\xff\x10"))
    theirs = run(frames.Frame.parse(stream.read_exact, mask=True))
    assert (theirs.opcode, bytes(theirs.data), theirs.fin) == (frames.Opcode.TEXT, payload, True)
    assert read(frames.Frame(frames.Opcode.TEXT, payload).serialize(mask=False)) == [Message(Opcode.TEXT, payload)]


# --- what a server may not send ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        ("818537fa213d7f9f4d5158", CloseCode.PROTOCOL_ERROR, "masked"),
        ("c10548656c6c6f", CloseCode.PROTOCOL_ERROR, "reserved"),
        ("830548656c6c6f", CloseCode.PROTOCOL_ERROR, "unknown opcode 3"),
        ("090548656c6c6f", CloseCode.PROTOCOL_ERROR, "in fragments"),
        ("897e0100", CloseCode.PROTOCOL_ERROR, "too long"),
        ("800548656c6c6f", CloseCode.PROTOCOL_ERROR, "continues nothing"),
        ("010348656c" "01026c6f", CloseCode.PROTOCOL_ERROR, "within another"),
        ("820548656c6c6f", CloseCode.PROTOCOL_ERROR, "binary"),
        ("817f4000000000000000", CloseCode.TOO_BIG, "4611686018427387904 bytes"),
        ("817fffffffffffffffff", CloseCode.TOO_BIG, "are allowed"),
    ],
)  # fmt: skip
def test_what_a_server_may_not_send_is_refused(data, code, words):
    with pytest.raises(FrameError, match=words) as caught:
        read(bytes.fromhex(data))
    assert caught.value.code == code


def test_fragments_that_add_up_to_too_much_are_refused_before_they_are_kept():
    reader = FrameReader(largest=1000)
    with pytest.raises(FrameError, match="1200 bytes is announced"):
        for part in [wire.frame(wire.TEXT, bytes(400), last=False), *[wire.frame(0, bytes(400), last=False)] * 2]:
            assert list(reader.feed(part)) == []


def test_a_text_that_is_none_is_refused():
    (message,) = read(wire.frame(wire.TEXT, b"\xc3("))
    with pytest.raises(FrameError, match="UTF-8") as caught:
        text_of(message)
    assert caught.value.code == CloseCode.NOT_UTF8


def test_why_somebody_closes_is_told():
    assert close_payload(CloseCode.PROTOCOL_ERROR) == b"\x03\xea"
    assert close_reason(b"") == "without a reason"
    assert close_reason(b"\x03\xe8") == "code 1000"
    assert close_reason(b"\x03\xe9bye \xff") == b"code 1001, 'bye \\ufffd'".decode("unicode_escape")
