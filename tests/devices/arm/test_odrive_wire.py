"""Packets, the table of endpoints and errors in words, without any drive."""

import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.arm.motors.errors import PARTS, explain
from devices.arm.motors.native.endpoints import fetch, identification, parse_table, table_folder
from devices.arm.motors.native.wire import checksum, request, response, sequence_number
from devices.emulators.odrive.firmware import crc16
from devices.emulators.odrive.table import rows, table_text
from haptics.errors import DeviceOpenError

CRC_056 = 0xC1A0
"""Checksum of the table of firmware 0.5.6."""

TEXT = table_text(rows())


@pytest.mark.parametrize(
    ("sequence", "name", "form", "value", "length", "acknowledged", "packet"),
    [
        (0x038F, "axis0.encoder.pos_estimate", None, None, 4, True, "8f03 4881 0400 a0c1"),
        (0x0392, "axis0.controller.input_torque", "<f", 0.05, 0, True, "9203 0681 0000 cdcc4c3d a0c1"),
        (0x039D, "axis0.controller.input_torque", "<f", 0.05, 0, False, "9d03 0601 0000 cdcc4c3d a0c1"),
        (0x0398, "axis0.watchdog_feed", None, None, 0, True, "9803 bf81 0000 a0c1"),
        (0x0395, "axis0.requested_state", "<B", 8, 0, True, "9503 8780 0000 08 a0c1"),
    ],
)
def test_requests_are_those_of_the_maker_s_client(
    sequence: int, name: str, form: str | None, value: float, length: int, acknowledged: bool, packet: str
) -> None:
    """Bytes of the maker's client to firmware 0.5.6; the addresses are from our excerpt of its table."""
    number = next(row.number for row in rows() if row.path == name)
    payload = struct.pack(form, value) if form else b""
    made = request(sequence, number, payload, length, CRC_056, acknowledged=acknowledged)
    assert made == bytes.fromhex(packet)


def test_an_answer_is_told_from_anything_else() -> None:
    assert response(bytes.fromhex("8f83 0000a03f")) == (0x038F, struct.pack("<f", 1.25))
    assert response(bytes.fromhex("9283")) == (0x0392, b"")
    assert response(bytes.fromhex("8f03 4881 0400 a0c1")) is None
    assert response(b"\x8f") is None
    assert response(b"") is None


def test_known_checksums() -> None:
    assert checksum(b"123456789", 0x1337) == 0xAA01
    assert checksum(bytes.fromhex("808000800002000000000100"), 0x1337) == 0xA3AB


@given(st.binary(max_size=200), st.integers(0, 0xFFFF))
def test_both_ends_agree_about_checksums(data: bytes, start: int) -> None:
    assert checksum(data, start) == crc16(data, start)


@given(st.integers(0, 1 << 40))
def test_a_request_is_never_taken_for_text_nor_for_an_answer(count: int) -> None:
    sequence = sequence_number(count)
    assert sequence & 0x80
    assert not sequence & 0x8000
    assert response(struct.pack("<H", sequence)) is None


def test_up_to_128_requests_can_be_under_way() -> None:
    assert len({sequence_number(count) for count in range(1000, 1128)}) == 128


# --- the table -------------------------------------------------------------------------------------------------------


def test_the_table_has_every_endpoint_under_its_name() -> None:
    table = parse_table(TEXT)
    for row in rows():
        if row.kind == "function":
            function = table.functions[row.path]
            assert function.number == row.number
            assert [part.number for part in function.inputs] == [number for _, _, number in row.inputs]
            assert [part.number for part in function.outputs] == [number for _, _, number in row.outputs]
        else:
            assert table.properties[row.path].number == row.number
            assert table.properties[row.path].writable == row.writable
    assert table.checksum == crc16(TEXT, 1)


def test_addresses_are_those_of_firmware_0_5_6() -> None:
    known = {
        "vbus_voltage": 2,
        "serial_number": 5,
        "axis0.error": 130,
        "axis0.current_state": 134,
        "axis0.config.watchdog_timeout": 145,
        "axis0.config.enable_watchdog": 146,
        "axis0.controller.input_pos": 260,
        "axis0.controller.input_vel": 261,
        "axis0.controller.config.control_mode": 275,
        "axis0.controller.config.input_mode": 276,
        "axis0.encoder.pos_estimate": 328,
        "axis0.encoder.vel_estimate": 334,
        "axis1.error": 448,
        "axis1.requested_state": 453,
        "axis1.controller.input_torque": 580,
        "axis1.encoder.pos_estimate": 646,
        "axis1.encoder.vel_estimate": 652,
    }
    table = parse_table(TEXT)
    assert {name: table.properties[name].number for name in known} == known
    functions = {"axis0.watchdog_feed": 447, "axis1.watchdog_feed": 765, "clear_errors": 787}
    assert {name: table.functions[name].number for name in functions} == functions


def test_what_is_of_no_known_type_is_left_out() -> None:
    kinds = {"a": "json", "b": "endpoint_ref", "c": "bool", "d": "float64"}
    members = [{"name": name, "id": 1, "type": kind} for name, kind in kinds.items()]
    assert set(parse_table(json.dumps(members).encode()).properties) == {"c"}


@pytest.mark.parametrize(
    "text", [b"", b"[", b"{}x", b'[{"name":"a"}]', b"[1]", b'[{"name":"a","id":"x","type":"bool"}]']
)
def test_a_text_that_is_no_table_is_refused(text: bytes) -> None:
    with pytest.raises(DeviceOpenError, match="cannot be understood"):
        parse_table(text)


class Pages:
    """A drive's text, in pieces; counts how often it is read."""

    def __init__(self, text: bytes = TEXT) -> None:
        self.text, self.reads = text, 0

    def __call__(self, offset: int) -> bytes:
        self.reads += 1
        return self.text[offset : offset + 61]


@pytest.mark.parametrize("number", ["70000", "32768", "-1", "1e999", "1.5", "true", '"7"', "null", "1" + "0" * 99])
@pytest.mark.parametrize("kind", ["bool", "function"])
def test_an_address_that_no_request_can_hold_is_refused(number: str, kind: str) -> None:
    text = '[{"name": "a", "id": %s, "type": "%s"}]'
    assert parse_table((text % ("32767", kind)).encode())
    with pytest.raises(DeviceOpenError, match="cannot be understood") as caught:
        parse_table((text % (number, kind)).encode())
    assert len(str(caught.value)) < 150


def test_the_table_is_read_once_and_kept(tmp_path: Path) -> None:
    pages, version = Pages(), identification(TEXT)
    folder = tmp_path / "not" / "there"
    first = fetch(version, pages, folder)
    assert pages.reads == -(-len(TEXT) // 61) + 1
    second = fetch(version, pages, folder)
    assert pages.reads == -(-len(TEXT) // 61) + 1
    assert first.checksum == second.checksum
    assert first.properties.keys() == second.properties.keys()
    assert [file.name for file in folder.iterdir()] == [f"{version:08x}.json"]


@pytest.mark.parametrize("kept", [b"", TEXT[:-1], TEXT.replace(b"260", b"261")])
def test_a_copy_that_is_not_whole_is_read_again(tmp_path: Path, kept: bytes) -> None:
    version = identification(TEXT)
    file = tmp_path / f"{version:08x}.json"
    file.write_bytes(kept)
    assert fetch(version, Pages(), tmp_path).properties["axis0.controller.input_pos"].number == 260
    assert file.read_bytes() == TEXT


def test_where_nothing_can_be_kept_it_is_read_every_time(tmp_path: Path) -> None:
    pages = Pages()
    (tmp_path / "file").write_text("in the way")
    for folder in (None, tmp_path / "file"):
        assert fetch(identification(TEXT), pages, folder).functions
    assert pages.reads == 2 * (-(-len(TEXT) // 61) + 1)


def test_a_table_that_was_garbled_on_its_way_is_refused_and_not_kept(tmp_path: Path) -> None:
    with pytest.raises(DeviceOpenError, match="garbled"):
        fetch(identification(TEXT), Pages(TEXT.replace(b"260", b"261")), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_drive_that_never_ends_its_table_is_not_listened_to_for_ever() -> None:
    with pytest.raises(DeviceOpenError, match="garbled"):
        fetch(1, lambda offset: bytes(4096), None)


def test_tables_are_kept_in_the_person_s_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert table_folder() == tmp_path / "haptics" / "odrive"


# --- errors in words -------------------------------------------------------------------------------------------------


def test_errors_are_told_part_by_part_with_what_to_do() -> None:
    errors = {"": 0x40 | 0x800, "motor": 1 << 3, "encoder": 0, "controller": 0}
    told = explain(1, errors)
    assert told.startswith("axis 1: the watchdog expired; motor: fault of the gate driver")
    assert "start again" in told
    assert "the motor failed" not in told  # it only says where to look


def test_where_no_part_says_why_the_axis_itself_is_told() -> None:
    assert explain(0, {"": 0x100}) == "axis 0: the encoder failed"


def test_no_error_is_nothing_and_an_unknown_one_a_number() -> None:
    assert explain(0, dict.fromkeys(PARTS, 0)) == ""
    assert explain(0, {"": 1 << 30}) == "axis 0: error bit 30"


@given(st.sampled_from(list(PARTS)), st.integers(0, 40))
def test_every_error_is_told(part: str, bit: int) -> None:
    assert explain(0, {part: 1 << bit})
