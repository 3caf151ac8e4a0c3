"""Messages, WebSocket frames, handshake and exchange of the Inverse3 service: documented examples and hostile input."""

import json
import math
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.emulators import websocket as wire
from devices.emulators.inverse3 import IDLE_AFTER, Filters, Service
from devices.inverse3 import exchange, websocket
from devices.inverse3.exchange import ServiceExchange, choose, require_usable
from devices.inverse3.service import MessageError, find_reading, force_template, parse_inventory, set_up_message
from devices.inverse3.websocket import (
    Address,
    CloseCode,
    FrameError,
    FrameReader,
    HandshakeError,
    Message,
    Opcode,
    check_answer,
    encode,
    parse_address,
    request,
    split_head,
    text_of,
)
from haptics.errors import DeviceNotFoundError, DeviceOpenError
from tests.devices.inverse3.documented import COMMANDS, STATE, answer, changed, inventory, message
from tests.devices.inverse3.services import emulated, transparent

# --- out --------------------------------------------------------------------------------------------------------------


@given(st.text(), st.tuples(*[st.floats(-10.0, 10.0)] * 3))
def test_force_message_is_the_documented_one_with_micronewton_resolution(device_id, force):
    vector = dict(zip("xyz", (pytest.approx(value, abs=6e-7) for value in force), strict=True))
    command = {"device_id": device_id, "commands": {"set_cursor_force": {"vector": vector}}}
    assert json.loads(force_template(device_id) % force) == {"inverse3": [command]}


def test_set_up_message_configures_profile_and_origin():
    first = json.loads(set_up_message("049D", "arm_front_centered"))
    assert set(first["session"]["configure"]) == {"profile"} and first["session"]["configure"]["profile"]["name"]
    (device,) = first["inverse3"]
    assert device["configure"] == {"preset": {"preset": "arm_front_centered"}}
    assert device["commands"] == {"set_cursor_force": {"vector": {"x": 0.0, "y": 0.0, "z": 0.0}}}


# --- in ---------------------------------------------------------------------------------------------------------------


def test_documented_inventory_and_state_are_parsed():
    (device,) = parse_inventory(inventory())
    assert device.device_id == "049D"
    assert device.names == ("049D", "0000A049D", "e1f0-42")
    assert (device.kind, device.scale) == ("inverse3", (1.0, 1.0, 1.0))
    assert device.status == {"calibrated": True, "in_use": False, "power_supply": True, "ready": True, "started": True}
    reading = find_reading(answer(), "049D")
    assert reading.position == (0.01, -0.12, 0.15)
    assert reading.force == (0.5, -0.25, 1.0)
    assert reading.trouble == ""


def test_scaled_transform_is_a_fault():
    for same in (None, {}, {"position": {"x": 0.1, "y": 0.0, "z": 0.0}}, {"scale": {"x": 1.0, "y": 1.0, "z": 1.0}}):
        assert find_reading(answer(("state.transform", same)), "049D").trouble == ""
    stretched = {"scale": {"x": 2.0, "y": 2.0, "z": 2.0}}
    for other in (stretched, {"scale": 3}):
        assert "stretched" in find_reading(answer(("state.transform", other)), "049D").trouble
    (device,) = parse_inventory(
        inventory(("state.transform", stretched), ("config.mount.scale", {"x": 0.5, "y": 1, "z": 1}))
    )
    assert device.scale == (1.0, 2.0, 2.0)
    with pytest.raises(DeviceOpenError, match="stretches the space"):
        require_usable(device, "inverse3")


@pytest.mark.parametrize(
    ("word", "words"),
    [("power_supply", "has no power"), ("calibrated", "not calibrated"), ("started", "not been started"),
     ("ready", "not ready")],
)  # fmt: skip
def test_every_status_flag_has_a_message(word, words):
    assert words in find_reading(answer((f"status.{word}", False)), "049D").trouble
    for unsaid in (None, "false", 0):
        assert find_reading(answer((f"status.{word}", unsaid)), "049D").trouble == ""


def test_device_in_use_is_rejected_before_opening_only():
    assert find_reading(answer(("status.in_use", True)), "049D").trouble == ""
    (device,) = parse_inventory(inventory(("status.in_use", True)))
    with pytest.raises(DeviceOpenError, match="in use by another program"):
        require_usable(device, "inverse3")
    (device,) = parse_inventory(inventory())
    require_usable(device, "inverse3")


@pytest.mark.parametrize("bad", [None, {}, {"x": 0.0, "y": 0.0}, {"x": 0.0, "y": "0", "z": 0.0}, 3, [0, 0, 0],
                                 {"x": True, "y": 0, "z": 0}, {"x": 1e9, "y": 0, "z": 0},
                                 {"x": 10**400, "y": 0, "z": 0}])  # fmt: skip
def test_invalid_cursor_position_is_rejected(bad):
    with pytest.raises(MessageError, match="does not say where the cursor of 049D is"):
        find_reading(answer(("state.cursor_position", bad)), "049D")
    assert math.isnan(sum(find_reading(answer(("state.current_cursor_force", bad)), "049D").force))


def test_missing_device_is_detected():
    for text in (message(), answer(device_id="049E"), "{}"):
        with pytest.raises(MessageError, match="device 049D is no longer there"):
            find_reading(text, "049D")


HOSTILE = ["", "{", "nonsense", "[]", "3", '"049D"', "null", '{"inverse3": {}}', '{"inverse3": [3]}', "[" * 100_000,
           '{"inverse3": [{"device_id": 3}]}', '{"inverse3": [{}]}', '{"inverse3": NaN}', '{"inverse3": [Infinity]}',
           '{"a":' * 100_000, '{"inverse3": ' + "9" * 5000 + "}"]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_invalid_messages_are_rejected(text):
    with pytest.raises(MessageError, match="the service sent"):
        find_reading(text, "049D")
    with pytest.raises(MessageError, match="the service sent"):
        parse_inventory(text)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
PATHS = ["config", "state", "status", "config.filters", "config.mount", "config.device_info", "config.mount.scale",
         "state.cursor_position", "state.transform", "state.current_cursor_force", "config.type"]  # fmt: skip


@given(st.sampled_from(PATHS), ANYTHING.filter(lambda value: value is not None))
def test_arbitrary_values_are_read_or_rejected(path, value):
    for read in (parse_inventory, lambda text: find_reading(text, "049D")):
        try:
            read(inventory((path, value)))
        except MessageError as error:
            assert "cursor" in str(error)


# --- which device -----------------------------------------------------------------------------------------------------


def both():
    first = json.loads(inventory())["inverse3"][0]
    second = changed(first, ("device_id", "04A0"), ("config.extended_device_id", "0000B04A0"),
                     ("config.device_info.uuid", "e1f0-43"), ("config.type", "minverse"))  # fmt: skip
    return parse_inventory(message(first, second))


@pytest.mark.parametrize(("name", "device_id"), [("049D", "049D"), ("04A0", "04A0"), ("0000B04A0", "04A0"),
                                                 ("e1f0-42", "049D"), ("e1f0-43", "04A0")])  # fmt: skip
def test_named_device_is_chosen(name, device_id):
    assert choose(both(), name).device_id == device_id


def test_ambiguous_or_missing_device_must_be_named():
    with pytest.raises(DeviceOpenError, match=r"choose one with device\.device_id: 049D, 04A0"):
        choose(both(), "")
    with pytest.raises(DeviceNotFoundError, match=r"no device\.device_id = '1234'; the service knows 049D, 04A0"):
        choose(both(), "1234")
    with pytest.raises(DeviceNotFoundError, match=r"knows of no Inverse3.*device\.emulated=true"):
        choose([], "")
    assert choose(both()[:1], "").device_id == "049D"
    first = json.loads(inventory())["inverse3"][0]
    twins = parse_inventory(message(first, changed(first, ("config.device_info.uuid", "e1f0-99"))))
    with pytest.raises(DeviceOpenError, match="two devices have the number 049D"):
        choose(twins, "e1f0-99")


def test_other_kind_of_device_is_rejected():
    _, small = both()
    with pytest.raises(DeviceOpenError, match=r"04A0 is a minverse.*set device\.kind=minverse"):
        require_usable(small, "inverse3")
    require_usable(small, "minverse")


# --- the emulated service ---------------------------------------------------------------------------------------------


def fields(table, prefix=""):
    for name, value in table.items():
        yield f"{prefix}{name}"
        if isinstance(value, dict):
            yield from fields(value, f"{prefix}{name}.")


def test_emulated_service_uses_documented_fields_only():
    service = Service([emulated()])
    for text, known in ((service.connect(), inventory()), (service.receive("{}", 0.0), answer())):
        mine, theirs = (json.loads(one)["inverse3"][0] for one in (text, known))
        assert set(fields(mine)) <= set(fields(theirs))
        find_reading(text, "049D")


@pytest.mark.parametrize("name", COMMANDS)
def test_emulated_service_applies_a_force_once_and_ignores_other_commands(name):
    device = emulated(filters=transparent())
    service = Service([device])
    service.connect()
    command = {"inverse3": [{"device_id": "049D", "commands": {name: COMMANDS[name]}}]}
    first = json.loads(service.receive(json.dumps(command), 0.001))["inverse3"][0]["state"]
    assert first["control_mode"] == ("force" if name == "set_cursor_force" else "idle")
    assert (device.applied != (0.0, 0.0, 0.0)) == (name == "set_cursor_force")
    if name == "set_cursor_force":
        assert device.applied == (0.0, 0.0, 1.5)
        assert first["current_cursor_force"] == {"x": 0.0, "y": 0.0, "z": 1.5}
    after = json.loads(service.receive("{}", 0.002))["inverse3"][0]["state"]
    assert after["control_mode"] == "idle"
    assert device.applied == (0.0, 0.0, 0.0)


def test_emulated_service_keeps_configuration_and_expires_forces():
    device = emulated(filters=transparent())
    service = Service([device])
    service.connect()
    configure = {"preset": {"preset": "arm_front_centered"}}
    force = {"set_cursor_force": {"vector": {"x": 1.0, "y": 0.0, "z": 0.0}}}
    message = {"inverse3": [{"device_id": "049D", "configure": configure, "commands": force}]}
    service.receive(json.dumps(message), 0.001)
    device.advance(0.9 * IDLE_AFTER)
    assert device.applied[:2] == (1.0, 0.0)
    device.advance(1.1 * IDLE_AFTER)
    assert device.applied == (0.0, 0.0, 0.0)
    assert device.preset == "arm_front_centered"


def test_force_gate_attenuates_alternating_forces():
    still, steady, shaken = (0.0, 0.0, 0.0), Filters(fixed=0.0), Filters(fixed=0.0)
    for _ in range(5):
        left = steady.apply((3.0, 0.0, 0.0), still)
    assert left == (3.0, 0.0, 0.0)
    tops = [abs(shaken.apply((3.0 * (-1.0) ** k, 0.0, 0.0), still)[0]) for k in range(50)]
    assert max(tops[20:]) < 2.0
    assert Filters(fixed=0.5).apply((3.0, 0.0, 0.0), (0.2, 0.0, 0.0))[0] == pytest.approx(2.9)


# --- WebSocket frames -------------------------------------------------------------------------------------------------


def read(data, largest=websocket.LARGEST):
    return list(FrameReader(largest).feed(data))


# --- examples of RFC 6455, section 5.7 --------------------------------------------------------------------------------


def test_masked_frames_match_the_rfc():
    mask = bytes.fromhex("37fa213d")
    assert encode(Opcode.TEXT, b"Hello", mask).hex() == "818537fa213d7f9f4d5158"
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
def test_frames_of_the_rfc_are_parsed(data, messages):
    assert read(bytes.fromhex(data)) == messages


# --- the other side ---------------------------------------------------------------------------------------------------


@given(st.binary(max_size=700), st.binary(min_size=4, max_size=4))
def test_emulated_server_parses_frames_of_the_driver(payload, mask):
    data = bytearray(encode(Opcode.TEXT, payload, mask) + b"more")
    assert wire.take_frame(data) == (wire.TEXT, payload)
    assert data == b"more"


@given(st.lists(st.text(max_size=200), max_size=5), st.data())
def test_messages_may_be_split_anywhere(texts, data):
    stream = b"".join(wire.frame(wire.TEXT, text.encode()) + wire.frame(wire.PING, b"?") for text in texts)
    reader, found = FrameReader(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += reader.feed(stream[:size])
        stream = stream[size:]
    assert [text_of(message) for message in found if message.opcode == Opcode.TEXT] == texts
    assert sum(message.opcode == Opcode.PING for message in found) == len(texts)


# --- invalid frames ---------------------------------------------------------------------------------------------------


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
def test_invalid_frames_are_rejected(data, code, words):
    with pytest.raises(FrameError, match=words) as caught:
        read(bytes.fromhex(data))
    assert caught.value.code == code


def test_too_large_fragmented_message_is_rejected_early():
    reader = FrameReader(largest=1000)
    with pytest.raises(FrameError, match="1200 bytes is announced"):
        for part in [
            wire.frame(wire.TEXT, bytes(400), last=False),
            *[wire.frame(0, bytes(400), last=False)] * 2,
        ]:
            assert list(reader.feed(part)) == []


def test_invalid_utf8_is_rejected():
    (message,) = read(wire.frame(wire.TEXT, b"\xc3("))
    with pytest.raises(FrameError, match="UTF-8") as caught:
        text_of(message)
    assert caught.value.code == CloseCode.NOT_UTF8


def test_close_reasons():
    assert websocket.close_payload(CloseCode.PROTOCOL_ERROR) == b"\x03\xea"
    assert websocket.close_reason(b"\x03\xe9bye \xff") == b"code 1001, 'bye \\ufffd'".decode("unicode_escape")


# --- handshake --------------------------------------------------------------------------------------------------------


KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
# Both as printed in RFC 6455, section 1.3.
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

ANSWER = (
    f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {ACCEPT}"
)


def test_accept_key_matches_the_rfc():
    check_answer(ANSWER.encode(), KEY)
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
def test_invalid_handshake_answers_are_rejected(was, becomes, words):
    assert was in ANSWER
    with pytest.raises(HandshakeError, match=words):
        check_answer(ANSWER.replace(was, becomes).encode("latin-1"), KEY)


def test_bytes_after_the_head_are_kept():
    assert split_head(b"one\r\ntwo\r\n") is None
    assert split_head(b"one\r\ntwo\r\n\r\nthree") == (b"one\r\ntwo", b"three")
    with pytest.raises(HandshakeError, match="no end"):
        split_head(bytes(websocket.LARGEST_HEAD + 1))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ws://localhost:10001", Address("localhost", 10001, "/")),
        ("ws://[::1]:7/a?b=c", Address("::1", 7, "/a?b=c")),
        ("ws://haply", Address("haply", 80, "/")),
    ],
)
def test_addresses_are_parsed(text, address):
    assert parse_address(text) == address
    head = request(address, KEY).decode()
    assert head.startswith(f"GET {address.resource} HTTP/1.1\r\n") and head.endswith("\r\n\r\n")
    assert f"Sec-WebSocket-Key: {KEY.decode()}\r\n" in head


@pytest.mark.parametrize("text", ["", "localhost:10001", "wss://a:1", "http://a:1", "ws://", "ws://a:70000", "ws://a:b",
                                  "ws://u@a:1", "ws://a:1/#x", "ws://a:1/\r\nX: y", "ws://a b:1"])  # fmt: skip
def test_invalid_addresses_are_rejected(text):
    with pytest.raises(ValueError):
        parse_address(text)


# --- exchange ---------------------------------------------------------------------------------------------------------


class Line:
    """Connection to a service that answers every force, or none."""

    def __init__(self, answers):
        self.answers, self.sent, self.socket = answers, [], None

    def send(self, text):
        self.sent.append(json.loads(text))

    def receive(self, patience):
        if self.answers:
            return [answer()]
        time.sleep(patience)
        return []


def exchange_with(service, monkeypatch):
    monkeypatch.setattr(exchange, "REST_PATIENCE", 0.01)
    return ServiceExchange(service, "049D", SimpleNamespace(keep_alive=1e-3, watchdog=0.05), reply_timeout=0.1)


def test_opening_exchanges_a_zero_force_for_the_first_sample(monkeypatch):
    service = Line(answers=True)
    opened = exchange_with(service, monkeypatch)
    assert opened.come_to_rest()
    assert len(service.sent) == 1
    _, *numbers = opened.samples.read()
    position, force = STATE["cursor_position"], STATE["current_cursor_force"]
    assert numbers == [*position.values(), *force.values(), 0.0, 0.0, 0.0]


def test_zero_force_without_an_answer_is_not_confirmed(monkeypatch):
    assert not exchange_with(Line(answers=False), monkeypatch).come_to_rest()
