"""The report descriptor: any valid one against hid-tools and its own making, and real ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from devices.joystick.hid import usages as u
from devices.joystick.hid.descriptor import (
    Collection,
    DescriptorError,
    Report,
    ReportDescriptor,
    ReportType,
    parse_descriptor,
)

from .descriptors import Described, descriptor_of, valid_descriptors
from .oracle import rows_of, rows_of_hid_tools

MANY = settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.too_slow])
FF2 = "sidewinder_ff2"
IN, OUT, FEATURE = ReportType


@pytest.fixture(scope="module")
def hid_tools() -> Any:
    return pytest.importorskip("hidtools.hid", reason="hid-tools, the independent parser, is not installed")


@given(valid_descriptors())
@MANY
def test_a_valid_descriptor_parses_to_the_fields_it_was_written_from(described: Described) -> None:
    for data in (described.data, described.plain):
        parsed = parse_descriptor(data)
        assert {(r.type, r.id): list(r.fields) for r in parsed.reports} == described.fields


@given(described=valid_descriptors())
@MANY
def test_hid_tools_finds_the_same_fields(hid_tools: Any, described: Described) -> None:
    assert rows_of(parse_descriptor(described.plain)) == rows_of_hid_tools(hid_tools, described.plain)


@pytest.mark.parametrize("name", [FF2, "openffboard", "arduino"])
def test_hid_tools_finds_the_same_fields_in_a_real_descriptor(hid_tools: Any, name: str) -> None:
    data = descriptor_of(name)
    ours = rows_of(parse_descriptor(data))
    assert ours == rows_of_hid_tools(hid_tools, data)
    assert sum(map(len, ours.values())) > 60


def test_the_first_of_delimited_usages_is_taken() -> None:
    data = b"\x05\x01\x75\x08\x95\x02\x15\x00\x25\x7f" + b"\xa9\x01\x09\x38\x09\x36\xa9\x00\x09\x30" + b"\x81\x02"
    (report,) = parse_descriptor(data).reports
    assert report.fields[0].usages == (0x10038, u.X)


def test_a_usage_keeps_its_page_if_a_later_one_is_of_the_page_in_force() -> None:
    data = b"\x75\x08\x95\x03\x25\x01" + b"\x05\x01\x09\x30\x05\x09\x09\x01\x0b\x31\x00\x01\x00" + b"\x81\x02"
    (report,) = parse_descriptor(data).reports
    assert report.fields[0].usages == (u.X, u.BUTTON_1, u.Y)


@pytest.mark.parametrize(
    ("said", "meant"),
    [("15 00 25 ff", (0, 255)), ("15 ff 25 ff", (-1, -1)), ("25 0c 15 01", (1, 12)), ("15 80 26 ff 00", (-128, 255))],
)
def test_a_maximum_has_the_sign_of_its_minimum(said: str, meant: tuple[int, int]) -> None:
    (report,) = parse_descriptor(bytes.fromhex(f"75 10 95 01 09 01 {said} 81 02")).reports
    assert (report.fields[0].logical_min, report.fields[0].logical_max) == meant


def test_a_pop_brings_back_what_held_at_the_push() -> None:
    data = "75 08 95 01 15 00 25 7f 85 01 09 01 81 02" + "a4 75 04 95 02 15 ff 25 01 85 02 81 02 b4" + "09 02 81 02"
    first, second = parse_descriptor(bytes.fromhex(data)).reports
    assert [(f.size, f.count, f.logical_min, f.logical_max, f.offset) for f in first.fields] == [
        (8, 1, 0, 127, 8),
        (8, 1, 0, 127, 16),
    ]
    assert [(f.size, f.count, f.logical_min, f.logical_max) for f in second.fields] == [(4, 2, -1, 1)]


@pytest.mark.parametrize(("said", "meant"), [("55 fd", -3), ("55 0d", -3), ("55 07", 7), ("56 fe ff", -2), ("54", 0)])
def test_unit_exponents_of_four_and_of_more_bits(said: str, meant: int) -> None:
    (report,) = parse_descriptor(bytes.fromhex(f"75 10 95 01 09 01 {said} 25 01 81 02")).reports
    assert report.fields[0].unit_exponent == meant


@pytest.fixture(scope="module")
def ff2() -> ReportDescriptor:
    data = descriptor_of(FF2)
    assert len(data) == 1343
    return parse_descriptor(data)


def layout(report: Report | None) -> list[tuple[int, int, int, int, int, int]]:
    """Return byte, bit, size, count and logical range of every field that is not padding."""
    assert report is not None
    found = [f for f in report.fields if not f.constant]
    return [(f.offset // 8, f.offset % 8, f.size, f.count, f.logical_min, f.logical_max) for f in found]


INDEX = (1, 0, 8, 1, 1, 40)
TIME = (0, 32767)
FF2_REPORTS = {
    (IN, u.JOYSTICK): (
        1,
        13,
        [
            (1, 0, 10, 1, -512, 511),
            (3, 0, 10, 1, -512, 511),
            (5, 0, 6, 1, -32, 31),
            (6, 0, 7, 1, 0, 127),
            (7, 0, 4, 1, 0, 7),
            (8, 0, 1, 8, 0, 1),
        ],
    ),
    (IN, u.STATE_REPORT): (2, 3, [(1, 0, 1, 5, 0, 1), (2, 0, 1, 1, 0, 1), (2, 1, 7, 1, 1, 40)]),
    (OUT, u.SET_EFFECT): (
        1,
        16,
        [
            INDEX,
            (2, 0, 8, 1, 1, 12),
            (3, 0, 16, 3, *TIME),
            (9, 0, 8, 1, 0, 255),
            (10, 0, 8, 1, 1, 8),
            (11, 0, 1, 2, 0, 1),
            (11, 2, 1, 1, 0, 1),
            (12, 0, 8, 2, 0, 255),
            (14, 0, 16, 1, *TIME),
        ],
    ),
    (OUT, u.SET_ENVELOPE): (2, 8, [INDEX, (2, 0, 8, 2, 0, 255), (4, 0, 16, 2, *TIME)]),
    (OUT, u.SET_CONDITION): (
        3,
        9,
        [
            INDEX,
            (2, 0, 4, 1, 0, 1),
            (2, 4, 2, 2, 0, 1),
            (3, 0, 8, 1, -128, 127),
            (4, 0, 8, 2, -128, 127),
            (6, 0, 8, 2, 0, 255),
            (8, 0, 8, 1, 0, 255),
        ],
    ),
    (OUT, u.SET_PERIODIC): (
        4,
        7,
        [INDEX, (2, 0, 8, 1, 0, 255), (3, 0, 8, 1, -128, 127), (4, 0, 8, 1, 0, 255), (5, 0, 16, 1, *TIME)],
    ),
    (OUT, u.SET_CONSTANT_FORCE): (5, 4, [INDEX, (2, 0, 16, 1, -255, 255)]),
    (OUT, u.SET_RAMP_FORCE): (6, 4, [INDEX, (2, 0, 8, 2, -128, 127)]),
    (OUT, u.DOWNLOAD_FORCE_SAMPLE): (8, 3, [(1, 0, 8, 2, -127, 127)]),
    (OUT, u.EFFECT_OPERATION_REPORT): (10, 4, [INDEX, (2, 0, 8, 1, 1, 3), (3, 0, 8, 1, 0, 255)]),
    (OUT, u.BLOCK_FREE_REPORT): (11, 2, [INDEX]),
    (OUT, u.DEVICE_CONTROL): (12, 2, [(1, 0, 8, 1, 1, 6)]),
    (OUT, u.DEVICE_GAIN_REPORT): (13, 2, [(1, 0, 8, 1, 0, 255)]),
    (FEATURE, u.CREATE_NEW_EFFECT): (1, 4, [(1, 0, 8, 1, 1, 12), (2, 0, 10, 1, 0, 511)]),
    (FEATURE, u.BLOCK_LOAD_REPORT): (2, 5, [INDEX, (2, 0, 8, 1, 1, 3), (3, 0, 16, 1, 0, 65535)]),
    (FEATURE, u.POOL_REPORT): (3, 5, [(1, 0, 16, 1, 0, 65535), (3, 0, 8, 1, 0, 255), (4, 0, 1, 2, 0, 1)]),
}


@pytest.mark.parametrize("key", FF2_REPORTS, ids=lambda key: f"{key[0]}-{key[1]:#x}")
def test_the_sidewinder_force_feedback_2(ff2: ReportDescriptor, key: tuple[ReportType, int]) -> None:
    report = ff2.of(*key)
    assert report is not None
    assert (report.id, report.length, layout(report)) == FF2_REPORTS[key]


def test_the_sidewinder_has_no_other_reports(ff2: ReportDescriptor) -> None:
    known = {(kind, number) for (kind, _), (number, _, _) in FF2_REPORTS.items()}
    assert {(r.type, r.id) for r in ff2.reports} - known == {(OUT, 7), (OUT, 14)}  # custom force


def test_what_a_field_of_the_sidewinder_says_of_itself(ff2: ReportDescriptor) -> None:
    x = ff2.report(IN, 1).field(u.X)
    magnitude = ff2.report(OUT, 5).field(u.MAGNITUDE, within=u.SET_CONSTANT_FORCE)
    delay = ff2.report(OUT, 1).field(u.START_DELAY)
    hat = ff2.report(IN, 1).field(u.HAT_SWITCH)
    assert x is not None and magnitude is not None and delay is not None and hat is not None
    assert (x.signed, x.physical_min, x.physical_max, x.relative) == (True, 0, 1023, False)
    assert (magnitude.physical_min, magnitude.physical_max) == (-10000, 10000)
    assert (delay.signed, delay.unit, delay.unit_exponent) == (False, 0x1003, -3)
    assert hat.null_state and not x.null_state
    assert x.collections == (Collection(1, u.JOYSTICK), Collection(0, 0x10001))


def test_reports_are_found_by_usage(ff2: ReportDescriptor) -> None:
    found = ff2.of(FEATURE, u.BLOCK_LOAD_REPORT)
    assert found is not None and found.field(u.RAM_POOL_AVAILABLE) is not None
    assert ff2.of(IN, u.SET_EFFECT) is None
    assert ff2.report(OUT, 5).field(u.MAGNITUDE, within=u.SET_PERIODIC) is None
    with pytest.raises(DescriptorError, match="no feature report 9"):
        ff2.report(FEATURE, 9)
