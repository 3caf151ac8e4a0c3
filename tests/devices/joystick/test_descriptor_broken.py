"""Report descriptors that are broken, or made to do harm: refused with the place and the reason, at little cost."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.joystick.hid.descriptor import DescriptorError, ReportDescriptor, parse_descriptor
from tests.sampling import sample

from .descriptors import Described, valid_descriptors
from .test_descriptor import MANY


@given(valid_descriptors())
@settings(MANY, max_examples=6)
def test_a_cut_descriptor_is_an_error_or_holds_the_fields_that_come_before_the_cut(described: Described) -> None:
    for length in range(len(described.data)):
        try:
            parsed = parse_descriptor(described.data[:length])
        except DescriptorError:
            continue
        for report in parsed.reports:
            whole = described.fields[report.type, report.id]
            assert list(report.fields) == whole[: len(report.fields)]


def assert_consistent(parsed: ReportDescriptor) -> None:
    """Assert what holds for every descriptor: bits side by side, numbers in range, one usage per element."""
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


def parse_or_refuse(data: bytes) -> None:
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
def test_random_bytes_are_refused_or_make_sense(data: bytes) -> None:
    parse_or_refuse(data)


@given(valid_descriptors(), st.data())
@MANY
def test_a_damaged_descriptor_is_refused_or_makes_sense(described: Described, data: st.DataObject) -> None:
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
    "many ranges": b"\x75\x01\x95\x01"
    + b"\x1b\0\0\0\0\x2b"
    + HUGE * 1
    + (b"\x1b\0\0\0\0\x2b" + HUGE) * 6000
    + b"\x81\x02",
    "deep collections": b"\xa1\x00" * 32000,
    "deep pushes": b"\x75\x08\x95\x01" + b"\xa4" * 65000,
    "long": b"\x81\x02" * 32768,
}


@pytest.mark.parametrize("name", sample(HOSTILE, 6))
def test_a_hostile_descriptor_costs_little(name: str) -> None:
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
def test_an_error_names_the_place_and_the_reason(name: str) -> None:
    data, words = BROKEN[name]
    with pytest.raises(DescriptorError, match=words):
        parse_descriptor(data)
