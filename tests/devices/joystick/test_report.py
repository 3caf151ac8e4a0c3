"""The report codec: round trips on any descriptor, the bits where the descriptor says, the bytes of real sticks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from devices.joystick.hid import usages as u
from devices.joystick.hid.descriptor import DescriptorError, Report, ReportDescriptor, ReportType, parse_descriptor
from devices.joystick.hid.report import Raw, ReportError, Value, decode, encode

from .descriptors import Described, descriptor_of, valid_descriptors

MANY = settings(deadline=None, max_examples=7, suppress_health_check=[HealthCheck.too_slow])
IN, OUT, FEATURE = ReportType
STICKS = ("sidewinder_ff2", "openffboard", "arduino")


@pytest.fixture(scope="module", params=STICKS)
def stick(request: pytest.FixtureRequest) -> tuple[str, ReportDescriptor]:
    return request.param, parse_descriptor(descriptor_of(request.param))


@pytest.fixture(scope="module")
def ff2() -> ReportDescriptor:
    return parse_descriptor(descriptor_of("sidewinder_ff2"))


def report_of(descriptor: ReportDescriptor, report_type: ReportType, usage: int) -> Report:
    report = descriptor.of(report_type, usage)
    assert report is not None
    return report


def choices(value: Value) -> list[int]:
    """Return the usages that an element can hold."""
    found = []
    for usage in value.field.usages:
        try:
            value.number_of(usage)
        except ReportError:
            continue
        found.append(usage)
    return found


def draw_values(report: Report, data: st.DataObject) -> dict[int, int | tuple[int, ...]]:
    """Draw something that the report can say, for all of its elements."""
    values: dict[int, int | tuple[int, ...]] = {}
    for usage, blank in decode(report, bytes([report.id]) + bytes(report.length)).items():
        drawn = []
        for i in range(len(blank) if isinstance(blank, tuple) else 1):
            place = Value(report, usage, i)
            if place.chooses:
                assume(choices(place))
                drawn.append(data.draw(st.sampled_from(choices(place))))
            else:
                assume(place.low <= place.high)  # a logical range outside of what the bits can hold
                drawn.append(data.draw(st.integers(place.low, place.high)))
        values[usage] = tuple(drawn) if len(drawn) > 1 else drawn[0]
    return values


@given(valid_descriptors(), st.data())
@MANY
def test_what_was_encoded_is_decoded(described: Described, data: st.DataObject) -> None:
    for report in parse_descriptor(described.data).reports:
        values = draw_values(report, data)
        encoded = encode(report, values)
        assert len(encoded) == report.length
        assert decode(report, encoded) == values
        assert decode(report, encoded + b"\xff") == values


@pytest.mark.parametrize("name", STICKS)
@given(data=st.data())
@settings(deadline=None, max_examples=5)
def test_what_was_encoded_for_a_real_stick_is_decoded(name: str, data: st.DataObject) -> None:
    for report in parse_descriptor(descriptor_of(name)).reports:
        values = draw_values(report, data)
        assert decode(report, encode(report, values)) == values


@given(valid_descriptors(), st.data())
@MANY
def test_a_number_occupies_its_bits_and_no_others(described: Described, data: st.DataObject) -> None:
    for report in parse_descriptor(described.data).reports:
        fields = [f for f in report.fields if not f.array and not f.constant and f.usages]
        assume(fields)
        field = data.draw(st.sampled_from(fields))
        element = data.draw(st.integers(0, field.count - 1))
        single = replace(report, fields=(replace(field, usages=tuple(range(1, field.count + 1))),))
        value = Value(single, element + 1)
        assume(value.low <= value.high)
        number = data.draw(st.integers(value.low, value.high))
        before = data.draw(st.binary(min_size=report.length, max_size=report.length))
        buffer = bytearray(before)
        value.put(buffer, number)
        shift, mask = field.offset + element * field.size, (1 << field.size) - 1
        expected = int.from_bytes(before, "little") & ~(mask << shift) | (number & mask) << shift
        assert bytes(buffer) == expected.to_bytes(report.length, "little")
        assert value.get(buffer) == number


@given(described=valid_descriptors(), data=st.data())
@MANY
def test_hid_tools_reads_the_same_numbers(described: Described, data: st.DataObject) -> None:
    hid = pytest.importorskip("hidtools.hid", reason="hid-tools, the independent parser, is not installed")
    theirs = hid.ReportDescriptor.from_bytes(described.plain)
    for report in parse_descriptor(described.plain).reports:
        content = data.draw(st.binary(min_size=report.length, max_size=report.length))
        if report.id:
            content = bytes([report.id]) + content[1:]
        read = {IN: theirs.input_reports, OUT: theirs.output_reports, FEATURE: theirs.feature_reports}
        expected: dict[int, list[Any]] = {}
        for field in read[report.type][report.id or -1].fields:
            if not field.is_const and not field.is_array and field.usage:
                expected.setdefault(field.usage, []).extend(field.get_values(list(content)))
        plain = {
            f.usages[i] for f in report.fields if not f.array and not f.constant and f.usages for i in range(f.count)
        }
        lists = [f for f in report.fields if f.array]
        mixed = {c.usage for f in lists for c in f.collections[-1:]} | {v for f in lists for v in f.usages} | {0}
        ours = decode(report, content)
        for usage in plain - mixed:
            numbers = ours[usage]
            assert (list(numbers) if isinstance(numbers, tuple) else [numbers]) == expected[usage]


@pytest.mark.parametrize(
    ("size", "low", "bits", "number"), [(2, 0x80, 3, -1), (2, 0x80, 2, -2), (1, 0x80, 1, 1), (2, 0, 3, 3)]
)
def test_a_small_number_has_a_sign_if_its_minimum_has(size: int, low: int, bits: int, number: int) -> None:
    (report,) = parse_descriptor(bytes([0x75, size, 0x95, 1, 0x09, 1, 0x15, low, 0x25, 0x7F, 0x81, 0x02])).reports
    assert decode(report, bytes([bits])) == {1: number}
    assert encode(report, {1: number}) == bytes([bits])


RESET = {"sidewinder_ff2": "0c 04", "openffboard": "0c 08", "arduino": "0c 04"}
STOP_ALL = {"sidewinder_ff2": "0c 03", "openffboard": "0c 04", "arduino": "0c 03"}
CREATE = {"sidewinder_ff2": "01 01 00 00", "openffboard": "11 01 00 00", "arduino": "05 01 00 00"}
ALONG_X = {
    "sidewinder_ff2": "01 01 01 ffff 0000 0000 ff 00 04 bf 00 0000",
    "openffboard": "01 01 01 ffff 0000 0000 0000 ff 00 04 7869 0000 00000000",
    "arduino": "01 01 01 ffff 0000 0000 ff 00 04 bf 00 00000000",
}
WEST = {"sidewinder_ff2": 191, "openffboard": 27000, "arduino": 191}
"""270 degrees in the units of the direction field."""
HALF = {
    "sidewinder_ff2": (-128, "05 01 80 ff"),
    "openffboard": (16384, "05 01 00 40"),
    "arduino": (5000, "05 01 88 13"),
}


def test_the_bytes_that_start_an_effect(stick: tuple[str, ReportDescriptor]) -> None:
    name, descriptor = stick
    control = report_of(descriptor, OUT, u.DEVICE_CONTROL)
    for command, expected in ((u.DEVICE_RESET, RESET), (u.STOP_ALL_EFFECTS, STOP_ALL)):
        assert encode(control, {u.DEVICE_CONTROL: command}) == bytes.fromhex(expected[name])
    assert encode(control, {u.DEVICE_CONTROL: {u.ENABLE_ACTUATORS}}) == b"\x0c\x01"
    assert encode(report_of(descriptor, OUT, u.DEVICE_GAIN_REPORT), {u.DEVICE_GAIN: 255}) == b"\x0d\xff"
    create = report_of(descriptor, FEATURE, u.CREATE_NEW_EFFECT)
    assert encode(create, {u.EFFECT_TYPE: u.CONSTANT_FORCE}) == bytes.fromhex(CREATE[name])
    effect = {
        u.EFFECT_BLOCK_INDEX: 1,
        u.EFFECT_TYPE: u.CONSTANT_FORCE,
        u.DURATION: Raw(-1),
        u.GAIN: 255,
        u.DIRECTION_ENABLE: 1,
        (u.DIRECTION, u.ORDINAL_1): WEST[name],
    }
    assert encode(report_of(descriptor, OUT, u.SET_EFFECT), effect) == bytes.fromhex(ALONG_X[name])
    operation = report_of(descriptor, OUT, u.EFFECT_OPERATION_REPORT)
    start = {u.EFFECT_BLOCK_INDEX: 2, u.EFFECT_OPERATION: u.START, u.LOOP_COUNT: 1}
    assert encode(operation, start) == b"\x0a\x02\x01\x01"
    assert encode(operation, {u.EFFECT_BLOCK_INDEX: 2, u.EFFECT_OPERATION: u.STOP}) == b"\x0a\x02\x03\x00"


def test_the_bytes_of_a_constant_force_streamed(stick: tuple[str, ReportDescriptor]) -> None:
    name, descriptor = stick
    report = report_of(descriptor, OUT, u.SET_CONSTANT_FORCE)
    buffer = bytearray(encode(report, {u.EFFECT_BLOCK_INDEX: 1}))
    assert buffer == b"\x05\x01\x00\x00"
    level, expected = HALF[name]
    magnitude = Value(report, u.MAGNITUDE)
    magnitude.put(buffer, level)
    assert buffer == bytes.fromhex(expected)
    assert encode(report, {u.EFFECT_BLOCK_INDEX: 1, u.MAGNITUDE: level}) == buffer
    assert magnitude.get(buffer) == level


def test_what_a_stick_answers(ff2: ReportDescriptor) -> None:
    loaded = report_of(ff2, FEATURE, u.BLOCK_LOAD_REPORT)
    assert decode(loaded, b"\x02\x03\x01\xff\x7f") == {
        u.EFFECT_BLOCK_INDEX: 3,
        u.BLOCK_LOAD_STATUS: u.BLOCK_LOAD_SUCCESS,
        u.RAM_POOL_AVAILABLE: 0x7FFF,  # declared as an array of one usage, meant as a number
    }
    assert decode(loaded, b"\x02\x00\x02\x00\x00")[u.BLOCK_LOAD_STATUS] == u.BLOCK_LOAD_FULL
    assert decode(loaded, b"\x02\x00\x09\x00\x00")[u.BLOCK_LOAD_STATUS] == 0
    pool = decode(report_of(ff2, FEATURE, u.POOL_REPORT), b"\x03\xff\xff\x0e\x03")
    assert (pool[u.SIMULTANEOUS_EFFECTS_MAX], pool[u.DEVICE_MANAGED_POOL]) == (14, 1)
    moved = decode(ff2.report(IN, 1), bytes.fromhex("01 00 02 ff 01 20 00 0f 81 00 00 00 00"))
    assert (moved[u.X], moved[u.Y], moved[u.RZ]) == (-512, 511, -32)
    assert (moved[u.HAT_SWITCH], moved[u.BUTTON_1], moved[u.BUTTON_1 + 7]) == (15, 1, 1)


def test_an_input_that_was_not_mentioned_is_absent(ff2: ReportDescriptor) -> None:
    values = decode(ff2.report(IN, 1), encode(ff2.report(IN, 1), {u.X: 5}))
    assert (values[u.X], values[u.Y]) == (5, 0)
    assert values[u.HAT_SWITCH] == 8  # 0 to 7 are directions


def test_one_usage_with_two_meanings_is_told_apart_by_its_collection() -> None:
    report = report_of(parse_descriptor(descriptor_of("openffboard")), OUT, u.SET_EFFECT)
    direction = Value(report, u.ORDINAL_2, within=u.DIRECTION)
    offset = Value(report, u.ORDINAL_2, within=u.TYPE_SPECIFIC_BLOCK_OFFSET)
    encoded = encode(report, {(u.DIRECTION, u.ORDINAL_2): 9000, (u.TYPE_SPECIFIC_BLOCK_OFFSET, u.ORDINAL_2): 7})
    assert (direction.get(encoded), offset.get(encoded)) == (9000, 7)
    assert encoded[16:18] == (9000).to_bytes(2, "little")
    assert decode(report, encoded)[u.ORDINAL_2] == (9000, 7)


def test_bits_are_set_by_the_usages_chosen() -> None:
    control = report_of(parse_descriptor(descriptor_of("openffboard")), OUT, u.DEVICE_CONTROL)
    both = {u.ENABLE_ACTUATORS, u.DEVICE_CONTINUE}
    assert encode(control, {u.DEVICE_CONTROL: both}) == bytes([0x0C, 0x01 | 0x20])
    assert encode(control, {u.ENABLE_ACTUATORS: 1, u.DEVICE_CONTINUE: 1}) == bytes([0x0C, 0x01 | 0x20])
    with pytest.raises(ReportError, match=f"offers no {u.START:#010x}"):
        encode(control, {u.DEVICE_CONTROL: u.START})


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({u.MAGNITUDE: 256}, "usage 0x000f0070: 256 is not in -255 to 255"),
        ({u.MAGNITUDE: -256}, "-256 is not in"),
        ({u.EFFECT_BLOCK_INDEX: 0}, "0 is not in 1 to 40"),
        ({u.GAIN: 1}, "output report 5 has no usage 0x000f0052"),
        ({(u.SET_PERIODIC, u.MAGNITUDE): 1}, "has no usage"),
        ({u.MAGNITUDE: (1, 2)}, "has 1 elements of usage 0x000f0070, not 2"),
    ],
)
def test_what_a_report_cannot_say_is_refused(ff2: ReportDescriptor, values: Any, words: str) -> None:
    with pytest.raises(ReportError, match=words):
        encode(report_of(ff2, OUT, u.SET_CONSTANT_FORCE), values)


def test_a_command_that_a_stick_does_not_know_is_refused(ff2: ReportDescriptor) -> None:
    with pytest.raises(ReportError, match="offers no"):
        encode(report_of(ff2, OUT, u.DEVICE_CONTROL), {u.DEVICE_CONTROL: u.START})


@pytest.mark.parametrize("length", range(4))
def test_a_short_report_is_refused(ff2: ReportDescriptor, length: int) -> None:
    report = report_of(ff2, OUT, u.SET_CONSTANT_FORCE)
    with pytest.raises(DescriptorError, match=f"has 4 bytes, not {length}"):
        decode(report, b"\x05\x01\x02\x03"[:length])
    magnitude, buffer = Value(report, u.MAGNITUDE), bytearray(length)
    with pytest.raises(ReportError, match="ends at byte 4"):
        magnitude.get(buffer)
    with pytest.raises(ReportError, match="ends at byte 4"):
        magnitude.put(buffer, 1)
    assert len(buffer) == length


def test_another_report_is_refused(ff2: ReportDescriptor) -> None:
    with pytest.raises(ReportError, match="input report 1: the data begin with 2"):
        decode(ff2.report(IN, 1), b"\x02" + bytes(12))


def test_an_element_that_is_not_there_is_refused(ff2: ReportDescriptor) -> None:
    for usage, index in ((u.X, 1), (u.X, -1), (u.MAGNITUDE, 0)):
        with pytest.raises(ReportError, match="so none at"):
            Value(ff2.report(IN, 1), usage, index)


def test_a_list_without_a_choice_stays_empty() -> None:
    keys = bytes.fromhex("05 07 a1 02 19 00 29 02 15 00 25 02 75 08 95 02 81 00 c0")
    (report,) = parse_descriptor(keys).reports
    assert encode(report, {}) == b"\x03\x03"
    assert encode(report, {0: [0x70002]}) == b"\x02\x03"
    assert decode(report, b"\x02\x03") == {0: (0x70002, 0)}


@pytest.mark.parametrize(
    ("low", "high", "bits", "absent"),
    [
        (0, 7, 4, 8),  # above the range
        (0, 14, 4, 15),
        (0, 15, 4, 0),  # every number is one of the range
        (0, 0, 4, 1),
        (1, 8, 4, 0),
        (-7, 6, 4, 7),
        (-7, 7, 4, -8),  # above it there is no room: below
        (-8, 7, 4, 0),
        (-8, 0, 4, 1),
        (-8, -1, 4, 0),
    ],
)
@pytest.mark.parametrize("null_state", [True, False])
def test_nothing_is_said_by_a_number_outside_the_range_that_fits(
    low: int, high: int, bits: int, absent: int, null_state: bool
) -> None:
    flags = 0x42 if null_state else 0x02
    numbers = bytes([0x15, low & 0xFF, 0x25, high & 0xFF])
    (report,) = parse_descriptor(b"\x75" + bytes([bits, 0x95, 1, 0x09, 1]) + numbers + bytes([0x81, flags])).reports
    assert Value(report, 1).absent == (absent if null_state else 0)
    assert decode(report, encode(report, {})) == {1: absent if null_state else 0}
