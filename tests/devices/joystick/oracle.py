"""What hid-tools, an independent parser, makes of report descriptors, and our fields in the same form."""

from __future__ import annotations

from typing import Any

from devices.joystick.hid.descriptor import Field, ReportDescriptor, ReportType

Row = tuple[Any, ...]


def rows_of(descriptor: ReportDescriptor) -> dict[tuple[ReportType, int], list[Row]]:
    """Return our fields the way hid-tools has them: one row per element, or per array, or per padding."""
    found: dict[tuple[ReportType, int], list[Row]] = {}
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


def _common(f: Field) -> Row:
    return (
        (f.array, f.constant, f.null_state, f.relative),
        (f.logical_min, f.logical_max),
        (f.physical_min, f.physical_max),
        (f.unit, f.unit_exponent),
    )


def rows_of_hid_tools(hid: Any, data: bytes) -> dict[tuple[ReportType, int], list[Row]]:
    """Return the fields that hid-tools finds. (Its `logical` is the last collection opened: not compared.)"""
    parsed = hid.ReportDescriptor.from_bytes(data)
    reports = {
        ReportType.INPUT: parsed.input_reports,
        ReportType.OUTPUT: parsed.output_reports,
        ReportType.FEATURE: parsed.feature_reports,
    }
    found: dict[tuple[ReportType, int], list[Row]] = {}
    for report_type, of_type in reports.items():
        for identity, report in of_type.items():
            rows = [_hid_tools_row(f) for f in report.fields if f.size * f.count]
            if rows:
                found[report_type, max(identity, 0)] = rows
    return found


def _hid_tools_row(f: Any) -> Row:
    array = f.is_array and not f.is_const
    return (
        f.start,
        f.size,
        f.count,
        f.usages if array else f.usage,
        (array, f.is_const, f.is_null, bool(f.type & 4)),
        (f.logical_min, _maximum(f.logical_min, f.logical_max)),
        (f.physical_min, _maximum(f.physical_min, f.physical_max)),
        (f.unit, _exponent(f.unit_exp)),
    )


class Unsigned(int):
    """A number that hid-tools has read without its sign: equal to what it would be as 8, 16 or 32 bits with one."""

    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        wrapped = {int(self)} | {int(self) - (1 << n) for n in (8, 16, 32) if 1 << n - 1 <= int(self) < 1 << n}
        return isinstance(other, int) and int(other) in wrapped


def _maximum(low: int, high: int) -> int:
    return Unsigned(high) if low < 0 else high


def _exponent(read: int) -> int:
    """Undo its reading of a negative exponent in a whole byte, 16 less than the byte without sign."""
    return read if read < 8 else Unsigned(read + 16)
