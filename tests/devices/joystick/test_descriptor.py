"""HID report descriptors and reports: valid, real, damaged and hostile ones; hid-tools is an independent parser."""

import struct
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from devices.emulators.pid.profiles import PROFILES
from devices.joystick.hid import usages as u
from devices.joystick.hid.descriptor import Collection, DescriptorError, ReportType, parse_descriptor
from devices.joystick.hid.report import ReportError, decode, encode, value_of
from devices.joystick.reports import InputLayout
from haptics.errors import DeviceOpenError
from tests.devices.joystick.descriptors import descriptor_of, valid_descriptors
from tests.sampling import sample

# --- fields in the form of hid-tools ----------------------------------------------------------------------------------


def rows_of(descriptor):
    """Return our fields the way hid-tools has them: one row per element, or per array, or per padding."""
    found = {}
    for report in descriptor.reports:
        rows = found[report.type, report.id] = []
        for f in report.fields:
            if f.array:
                rows.append((f.offset, f.size, f.count, list(f.usages), *_common(f)))
            elif not f.usages:
                rows.append((f.offset, f.size * f.count, 1, 0, *_common(f)))
            else:
                places = range(f.offset, f.offset + f.size * f.count, f.size)
                rows += [(at, f.size, 1, u, *_common(f)) for at, u in zip(places, f.usages, strict=True)]
    return found


def _common(f):
    return (
        (f.array, f.constant, f.null_state, f.relative),
        (f.logical_min, f.logical_max),
        (f.unit, f.unit_exponent),
    )


def rows_of_hid_tools(hid, data):
    """Return the fields that hid-tools finds. (Its `logical` is the last collection opened: not compared.)"""
    parsed = hid.ReportDescriptor.from_bytes(data)
    reports = {
        ReportType.INPUT: parsed.input_reports,
        ReportType.OUTPUT: parsed.output_reports,
        ReportType.FEATURE: parsed.feature_reports,
    }
    found = {}
    for report_type, of_type in reports.items():
        for identity, report in of_type.items():
            rows = [_hid_tools_row(f) for f in report.fields if f.size * f.count]
            if rows:
                found[report_type, max(identity, 0)] = rows
    return found


def _hid_tools_row(f):
    array = f.is_array and not f.is_const
    return (
        f.start,
        f.size,
        f.count,
        f.usages if array else f.usage,
        (array, f.is_const, f.is_null, bool(f.type & 4)),
        (f.logical_min, _maximum(f.logical_min, f.logical_max)),
        (f.unit, _exponent(f.unit_exp)),
    )


class Unsigned(int):
    """A number that hid-tools read without its sign: equal to its signed value of 8, 16 or 32 bits."""

    __hash__ = int.__hash__

    def __eq__(self, other):
        wrapped = {int(self)} | {int(self) - (1 << n) for n in (8, 16, 32) if 1 << n - 1 <= int(self) < 1 << n}
        return isinstance(other, int) and int(other) in wrapped


def _maximum(low, high):
    return Unsigned(high) if low < 0 else high


def _exponent(read):
    """Undo its reading of a negative exponent in a whole byte, 16 less than the byte without sign."""
    return read if read < 8 else Unsigned(read + 16)


MANY = settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.too_slow])
FF2 = "sidewinder_ff2"
STICKS = (FF2, "openffboard", "arduino")
IN, OUT, FEATURE = ReportType


@pytest.fixture(scope="module")
def hid_tools():
    return pytest.importorskip("hidtools.hid", reason="hid-tools, the independent parser, is not installed")


@given(valid_descriptors())
@MANY
def test_valid_descriptor_parses_to_its_fields(described):
    for data in (described.data, described.plain):
        parsed = parse_descriptor(data)
        assert {(r.type, r.id): list(r.fields) for r in parsed.reports} == described.fields


@given(described=valid_descriptors())
@MANY
def test_fields_match_hid_tools(hid_tools, described):
    assert rows_of(parse_descriptor(described.plain)) == rows_of_hid_tools(hid_tools, described.plain)


@pytest.mark.parametrize("name", STICKS)
def test_fields_of_a_real_descriptor_match_hid_tools(hid_tools, name):
    data = descriptor_of(name)
    ours = rows_of(parse_descriptor(data))
    assert ours == rows_of_hid_tools(hid_tools, data)
    assert sum(map(len, ours.values())) > 60


@pytest.mark.parametrize(
    ("said", "usages"),
    [
        ("95 02 05 01 a9 01 09 38 09 36 a9 00 09 30", (0x10038, u.X)),  # the first one within a delimiter
        ("95 03 05 01 09 30 05 09 09 01 0b 31 00 01 00", (u.X, u.BUTTON_1, u.Y)),  # an extended usage keeps its page
    ],
)
def test_delimited_and_extended_usages(said, usages):
    (report,) = parse_descriptor(bytes.fromhex(f"75 08 25 7f {said} 81 02")).reports
    assert report.fields[0].usages == usages


@pytest.mark.parametrize(
    ("said", "meant"),
    [("15 00 25 ff", (0, 255)), ("15 ff 25 ff", (-1, -1)), ("25 0c 15 01", (1, 12)), ("15 80 26 ff 00", (-128, 255))],
)
def test_logical_maximum_has_the_sign_of_the_minimum(said, meant):
    (report,) = parse_descriptor(bytes.fromhex(f"75 10 95 01 09 01 {said} 81 02")).reports
    assert (report.fields[0].logical_min, report.fields[0].logical_max) == meant


def test_pop_restores_the_globals():
    data = "75 08 95 01 15 00 25 7f 85 01 09 01 81 02" + "a4 75 04 95 02 15 ff 25 01 85 02 81 02 b4" + "09 02 81 02"
    first, second = parse_descriptor(bytes.fromhex(data)).reports
    assert [(f.size, f.count, f.logical_min, f.logical_max, f.offset) for f in first.fields] == [
        (8, 1, 0, 127, 8),
        (8, 1, 0, 127, 16),
    ]
    assert [(f.size, f.count, f.logical_min, f.logical_max) for f in second.fields] == [(4, 2, -1, 1)]


@pytest.mark.parametrize(("said", "meant"), [("55 fd", -3), ("55 0d", -3), ("55 07", 7), ("56 fe ff", -2), ("54", 0)])
def test_unit_exponents(said, meant):
    (report,) = parse_descriptor(bytes.fromhex(f"75 10 95 01 09 01 {said} 25 01 81 02")).reports
    assert report.fields[0].unit_exponent == meant


@pytest.fixture(scope="module")
def ff2():
    data = descriptor_of(FF2)
    assert len(data) == 1343
    return parse_descriptor(data)


def numbered(descriptor, report_type, number):
    return next(report for report in descriptor.reports if (report.type, report.id) == (report_type, number))


def test_reports_are_found_by_usage(ff2):
    found = ff2.of(FEATURE, u.BLOCK_LOAD_REPORT)
    assert found is not None and found.field(u.RAM_POOL_AVAILABLE) is not None
    assert ff2.of(IN, u.SET_EFFECT) is None
    assert numbered(ff2, OUT, 5).field(u.MAGNITUDE, within=u.SET_PERIODIC) is None
    x = numbered(ff2, IN, 1).field(u.X)
    assert x is not None and x.signed and x.collections == (Collection(1, u.JOYSTICK), Collection(0, 0x10001))
    assert not numbered(ff2, OUT, 1).field(u.START_DELAY).signed


@given(valid_descriptors())
@settings(MANY, max_examples=6)
def test_truncated_descriptor_is_rejected_or_has_the_leading_fields(described):
    for length in range(len(described.data)):
        try:
            parsed = parse_descriptor(described.data[:length])
        except DescriptorError:
            continue
        for report in parsed.reports:
            whole = described.fields[report.type, report.id]
            assert list(report.fields) == whole[: len(report.fields)]


def assert_consistent(parsed):
    """Assert the invariants of every descriptor: adjacent bits, numbers in range, one usage per element."""
    for report in parsed.reports:
        assert (1 <= report.id <= 255) if parsed.numbered else report.id == 0
        bit = 8 if parsed.numbered else 0
        for field in report.fields:
            assert (field.report_type, field.report_id, field.offset) == (report.type, report.id, bit)
            assert field.array or len(field.usages) in {0, field.count}
            assert field.constant or field.logical_min <= field.logical_max
            bit += field.size * field.count
        assert report.fields
        assert report.length == (bit + 7) // 8 <= 0xFFFF


def parse_or_refuse(data):
    try:
        parsed = parse_descriptor(data)
    except DescriptorError as error:
        assert str(error).startswith("report descriptor")
    else:
        assert_consistent(parsed)


SHORT_ITEMS = st.builds(
    lambda tag, size, data: bytes([tag | size]) + data[: (0, 1, 2, 4)[size]],
    st.sampled_from([0x80, 0x90, 0xB0, 0xA0, 0xC0, *range(0x04, 0xC0, 0x10), 0x08, 0x18, 0x28, 0xA8, 0x0C]),
    st.integers(0, 3),
    st.binary(min_size=4, max_size=4) | st.sampled_from([b"\x01\0\0\0", b"\x08\0\0\0", b"\xff\xff\xff\xff"]),
)


@given(st.binary(max_size=200) | st.lists(SHORT_ITEMS, max_size=80).map(b"".join))
@settings(deadline=None, max_examples=50)
def test_random_bytes_are_rejected_or_consistent(data):
    parse_or_refuse(data)


@given(valid_descriptors(), st.data())
@MANY
def test_damaged_descriptor_is_rejected_or_consistent(described, data):
    damaged = bytearray(described.data)
    for _ in range(data.draw(st.integers(1, 4)) if damaged else 0):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    parse_or_refuse(bytes(damaged))


HUGE = b"\xff\xff\xff\xff"
HOSTILE = {
    "2^32-1 elements": b"\x75\x01\x97" + HUGE + b"\x81\x02",
    "2^32-1 elements of 2^32-1 bits": b"\x77" + HUGE + b"\x97" + HUGE + b"\x09\x01\x81\x02",
    "2^32-1 elements of no bits": b"\x75\x00\x97" + HUGE + b"\x09\x01\x81\x02",
    "all usages, array": b"\x75\x08\x95\x01\x1b\0\0\0\0\x2b" + HUGE + b"\x81\x00",
    "all usages, variable": b"\x75\x08\x95\x01\x1b\0\0\0\0\x2b" + HUGE + b"\x81\x02",
    "all usages, collection": b"\x1b\0\0\0\0\x2b" + HUGE + b"\xa1\x01\xc0",
    "many lists": b"\x75\x08\x95\x01" + b"\x19\x00\x2a\xff\xff\x81\x00" * 9000,
    "many elements": b"\x75\x01\x97\xf0\xff\x07\x00"
    + b"".join(bytes([0x85, i]) + b"\x09\x01\x81\x02\x09\x01\x91\x02\x09\x01\xb1\x02" for i in range(1, 256)),
    "many fields": b"\x75\x01\x95\x01" + b"\x81\x02" * 10000,
    "many ranges": b"\x75\x01\x95\x01" + (b"\x1b\0\0\0\0\x2b" + HUGE) * 6001 + b"\x81\x02",
    "deep collections": b"\xa1\x00" * 32000,
    "deep pushes": b"\x75\x08\x95\x01" + b"\xa4" * 65000,
    "long": b"\x81\x02" * 32768,
}


@pytest.mark.parametrize("name", sample(HOSTILE, 6))
def test_hostile_descriptor_uses_little_memory(name):
    tracemalloc.start()
    try:
        parse_or_refuse(HOSTILE[name])
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()


BROKEN = {
    "a cut item": (b"\x05\x01\x27\xff\xff", "byte 2: an item of 4 bytes is cut off"),
    "a cut long item": (b"\xfe\x05\x01\x00", "byte 0: an item of 7 bytes is cut off"),
    "a cut prefix of a long item": (b"\xfe", "byte 0: an item of 2 bytes is cut off"),
    "an open collection": (b"\xa1\x01", "ends inside a collection"),
    "a closed one too many": (b"\xa1\x01\xc0\xc0", "byte 3: the end of a collection"),
    "a pop too many": (b"\xb4", "byte 0: a pop without a push"),
    "report id 0": (b"\x85\x00", "report id 0; allowed are 1 to 255"),
    "report id 256": (b"\x86\x00\x01", "report id 256"),
    "a late report id": (b"\x75\x08\x95\x01\x81\x02\x85\x01", "byte 6: a report id after fields without one"),
    "a lost report id": (b"\x75\x08\x95\x01\xa4\x85\x01\xb4\x81\x02", "byte 8: a field without a report id"),
    "an unknown global": (b"\xc4", "unknown global item 0xc4"),
    "a huge page": (b"\x07\x00\x00\x01\x00", "usage page 0x10000"),
    "a backward usage range": (b"\x19\x05\x29\x04", "usage range from 0x5 to 0x4"),
    "half a usage range": (b"\x75\x08\x95\x01\x19\x05\x81\x02", "byte 6: a usage minimum or maximum"),
    "an open delimiter": (b"\x75\x08\x95\x01\xa9\x01\x09\x01\x81\x02", "byte 8: a delimiter before it"),
    "a delimiter in a delimiter": (b"\xa9\x01\xa9\x01", "byte 2: delimiters do not come in pairs"),
    "a backward logical range": (b"\x75\x08\x95\x01\x15\x05\x25\x04\x81\x02", "logical range from 5 to 4"),
    "too long": (b"\x75\x01\x97\xff\xff\xff\x7f\x81\x02", "at most 65535 bytes"),
    "a long descriptor": (bytes(65536), "65536 bytes: at most 65535"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_error_names_position_and_reason(name):
    data, words = BROKEN[name]
    with pytest.raises(DescriptorError, match=words):
        parse_descriptor(data)


# --- reports ----------------------------------------------------------------------------------------------------------


def report_of(descriptor, report_type, usage):
    report = descriptor.of(report_type, usage)
    assert report is not None
    return report


def choices(value):
    """Return the usages that an element can hold."""
    found = []
    for usage in value.field.usages:
        try:
            value.number_of(usage)
        except ReportError:
            continue
        found.append(usage)
    return found


def draw_values(report, data):
    """Draw something that the report can say, for all of its elements."""
    values = {}
    for usage, blank in decode(report, bytes([report.id]) + bytes(report.length)).items():
        drawn = []
        for i in range(len(blank) if isinstance(blank, tuple) else 1):
            place = value_of(report, usage, i)
            if place.chooses:
                assume(choices(place))
                drawn.append(data.draw(st.sampled_from(choices(place))))
            else:
                assume(place.low <= place.high)  # a logical range that exceeds the bits
                drawn.append(data.draw(st.integers(place.low, place.high)))
        values[usage] = tuple(drawn) if len(drawn) > 1 else drawn[0]
    return values


@given(valid_descriptors(), st.data())
@MANY
def test_encode_and_decode_are_inverse(described, data):
    for report in parse_descriptor(described.data).reports:
        values = draw_values(report, data)
        encoded = encode(report, values)
        assert len(encoded) == report.length
        assert decode(report, encoded) == values
        assert decode(report, encoded + b"\xff") == values


@given(valid_descriptors(), st.data())
@MANY
def test_put_changes_only_the_bits_of_the_element(described, data):
    for report in parse_descriptor(described.data).reports:
        fields = [f for f in report.fields if not f.array and not f.constant and f.usages]
        assume(fields)
        field = data.draw(st.sampled_from(fields))
        element = data.draw(st.integers(0, field.count - 1))
        single = replace(report, fields=(replace(field, usages=tuple(range(1, field.count + 1))),))
        value = value_of(single, element + 1)
        assume(value.low <= value.high)
        number = data.draw(st.integers(value.low, value.high))
        before = data.draw(st.binary(min_size=report.length, max_size=report.length))
        buffer = bytearray(before)
        value.put(buffer, number)
        shift, mask = field.offset + element * field.size, (1 << field.size) - 1
        expected = int.from_bytes(before, "little") & ~(mask << shift) | (number & mask) << shift
        assert bytes(buffer) == expected.to_bytes(report.length, "little")
        assert value.get(buffer) == number


@pytest.mark.parametrize(
    ("size", "low", "bits", "number"), [(2, 0x80, 3, -1), (2, 0x80, 2, -2), (1, 0x80, 1, 1), (2, 0, 3, 3)]
)
def test_sign_of_a_value_follows_the_minimum(size, low, bits, number):
    (report,) = parse_descriptor(bytes([0x75, size, 0x95, 1, 0x09, 1, 0x15, low, 0x25, 0x7F, 0x81, 0x02])).reports
    assert decode(report, bytes([bits])) == {1: number}
    assert encode(report, {1: number}) == bytes([bits])


HALF = {FF2: (-128, "05 01 80 ff"), "openffboard": (16384, "05 01 00 40"), "arduino": (5000, "05 01 88 13")}


@pytest.mark.parametrize("name", STICKS)
def test_bytes_of_a_streamed_force_match_the_device(name):
    report = report_of(parse_descriptor(descriptor_of(name)), OUT, u.SET_CONSTANT_FORCE)
    buffer = bytearray(encode(report, {u.EFFECT_BLOCK_INDEX: 1}))
    assert buffer == b"\x05\x01\x00\x00"
    level, expected = HALF[name]
    magnitude = value_of(report, u.MAGNITUDE)
    magnitude.put(buffer, level)
    assert buffer == bytes.fromhex(expected)
    assert encode(report, {u.EFFECT_BLOCK_INDEX: 1, u.MAGNITUDE: level}) == buffer
    assert magnitude.get(buffer) == level


def test_answers_of_a_stick_are_decoded(ff2):
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
    moved = decode(numbered(ff2, IN, 1), bytes.fromhex("01 00 02 ff 01 20 00 0f 81 00 00 00 00"))
    assert (moved[u.X], moved[u.Y], moved[u.RZ]) == (-512, 511, -32)
    assert (moved[u.HAT_SWITCH], moved[u.BUTTON_1], moved[u.BUTTON_1 + 7]) == (15, 1, 1)


def test_missing_input_is_the_null_value(ff2):
    values = decode(numbered(ff2, IN, 1), encode(numbered(ff2, IN, 1), {u.X: 5}))
    assert (values[u.X], values[u.Y]) == (5, 0)
    assert values[u.HAT_SWITCH] == 8  # 0 to 7 are directions


def test_collection_distinguishes_equal_usages():
    report = report_of(parse_descriptor(descriptor_of("openffboard")), OUT, u.SET_EFFECT)
    direction = value_of(report, u.ORDINAL_2, within=u.DIRECTION)
    offset = value_of(report, u.ORDINAL_2, within=u.TYPE_SPECIFIC_BLOCK_OFFSET)
    encoded = encode(report, {(u.DIRECTION, u.ORDINAL_2): 9000, (u.TYPE_SPECIFIC_BLOCK_OFFSET, u.ORDINAL_2): 7})
    assert (direction.get(encoded), offset.get(encoded)) == (9000, 7)
    assert encoded[16:18] == (9000).to_bytes(2, "little")
    assert decode(report, encoded)[u.ORDINAL_2] == (9000, 7)


def test_usages_select_bits():
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
def test_invalid_values_are_rejected(ff2, values, words):
    with pytest.raises(ReportError, match=words):
        encode(report_of(ff2, OUT, u.SET_CONSTANT_FORCE), values)


@pytest.mark.parametrize("length", range(4))
def test_short_report_is_rejected(ff2, length):
    report = report_of(ff2, OUT, u.SET_CONSTANT_FORCE)
    with pytest.raises(DescriptorError, match=f"has 4 bytes, not {length}"):
        decode(report, b"\x05\x01\x02\x03"[:length])


def test_other_report_and_missing_elements_are_rejected(ff2):
    moved = numbered(ff2, IN, 1)
    with pytest.raises(ReportError, match="input report 1: the data begin with 2"):
        decode(moved, b"\x02" + bytes(12))
    for usage, index in ((u.X, 1), (u.X, -1), (u.MAGNITUDE, 0)):
        with pytest.raises(ReportError, match="so none at"):
            value_of(moved, usage, index)


@pytest.mark.parametrize("usages", ["1901 2903", "1b01000900 2903", "1901 2b03000900", "1b01000900 2b03000900"])
def test_each_end_of_a_usage_range_may_contain_its_page(usages):
    buttons = bytes.fromhex(f"0509 a101 {usages} 1500 2501 7501 9503 8102 9505 8103 c0")
    (report,) = parse_descriptor(buttons).reports
    assert decode(report, b"\x05") == {0x90001: 1, 0x90002: 0, 0x90003: 1}


def test_empty_array_is_encoded():
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
def test_null_value_is_outside_the_logical_range(low, high, bits, absent, null_state):
    flags = 0x42 if null_state else 0x02
    numbers = bytes([0x15, low & 0xFF, 0x25, high & 0xFF])
    (report,) = parse_descriptor(b"\x75" + bytes([bits, 0x95, 1, 0x09, 1]) + numbers + bytes([0x81, flags])).reports
    assert value_of(report, 1).absent == (absent if null_state else 0)
    assert decode(report, encode(report, {})) == {1: absent if null_state else 0}


# --- input reports ----------------------------------------------------------------------------------------------------


STICK = PROFILES["openffboard"]
# Report number of the additional device.
NUMBER = 9

BUTTONS = "0509 1901 2903 1500 2501 9503 7501 8102 9501 7505 8103"
RELATIVE, ABSOLUTE = "8106", "8102"


def besides(application, flags):
    """Return another device with buttons and the axes X and Y in a separate report."""
    axes = f"0501 0930 0931 1581 257f 7508 9502 {flags}"
    return bytes.fromhex(f"0501 09{application} a101 0901 a100 85{NUMBER:02x} {BUTTONS} {axes} c0 c0")


MOUSE, POINTER, JOYSTICK, GAMEPAD = "02", "01", "04", "05"
OTHERS = {
    "a mouse": besides(MOUSE, RELATIVE),
    "a mouse with places": besides(MOUSE, ABSOLUTE),
    "a pointer": besides(POINTER, ABSOLUTE),
    "a pad with knobs that turn for ever": besides(GAMEPAD, RELATIVE),
    "another stick, without motors": besides(JOYSTICK, ABSOLUTE),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("first", [True, False])
def test_position_belongs_to_the_application_with_the_effects(other, first):
    own = STICK.report_descriptor
    layout = InputLayout(parse_descriptor(OTHERS[other] + own if first else own + OTHERS[other]), u.X, u.Y)
    assert layout.report.id == 1
    assert layout.ranges == ((-32767, 32767), (-32767, 32767))
    assert layout.buttons == 31
    sample = layout.sample(STICK.input(1234, -4321, 5), 7.0)
    assert (sample.x, sample.y, sample.buttons) == (1234, -4321, 5)
    assert not layout.is_position(bytes((NUMBER, 0, 1, 1)))


def test_absolute_fields_precede_relative_fields():
    relative = bytes.fromhex("0501 0930 0931 1581 257f 7508 9502 8106")
    own = STICK.report_descriptor
    head = own.index(b"\x85\x01") + 2
    mixed = own[:head] + relative + own[head:]
    layout = InputLayout(parse_descriptor(mixed), u.X, u.Y)
    report = STICK.input(1234, -4321, 0)
    sample = layout.sample(report[:1] + struct.pack("<bb", 3, -3) + report[1:], 0.0)
    assert (sample.x, sample.y) == (1234, -4321)


@pytest.mark.parametrize("other", list(OTHERS)[:4])
def test_device_without_position_report_is_rejected(other):
    own = STICK.report_descriptor.replace(bytes.fromhex("09300931"), bytes.fromhex("09380938"), 1)
    with pytest.raises(DeviceOpenError, match="no input report with the axes 0x00010030 and 0x00010031"):
        InputLayout(parse_descriptor(OTHERS[other] + own), u.X, u.Y)


def test_position_in_another_application_is_accepted():
    effects = bytes.fromhex("050f 0901 a101") + STICK.report_descriptor[6:]
    without = effects.replace(bytes.fromhex("09300931"), bytes.fromhex("09380938"), 1)
    layout = InputLayout(parse_descriptor(OTHERS["another stick, without motors"] + without), u.X, u.Y)
    assert layout.report.id == NUMBER


def test_wheel_has_one_axis():
    layout = InputLayout(parse_descriptor(STICK.report_descriptor), u.X)
    sample = layout.sample(STICK.input(1234, -4321, 0), 0.0)
    assert (sample.x, sample.y) == (1234, 0)
    assert layout.ranges == ((-32767, 32767),)
