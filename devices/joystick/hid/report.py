"""Encoding and decoding of HID reports by usage.

`encode` and `decode` process whole reports. `Value` accesses one number at a precomputed position, for streaming::

    report = descriptor.of(ReportType.OUTPUT, usages.SET_CONSTANT_FORCE)
    buffer = bytearray(encode(report, {usages.EFFECT_BLOCK_INDEX: 1}))
    magnitude = Value(report, usages.MAGNITUDE)
    magnitude.put(buffer, -255)

A key is a usage, or a pair (usage of an enclosing collection, usage) if one usage occurs with two meanings, such as the
ordinals of a direction and of a block offset. For a field that chooses from a list of usages (an array), the key is the
usage of its collection and the value is the chosen usage. A list of single bits is written in the same way, or bit by
bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index as whole_number

from devices.joystick.hid.descriptor import DescriptorError, Field, Report

__all__ = ["Raw", "ReportError", "Value", "decode", "encode"]

Key = int | tuple[int, int]


class ReportError(DescriptorError):
    """Mismatch between a report and its description.

    The report is too short or the wrong one, lacks a usage, or a value is out of range.
    """


class Raw(int):
    """Number that is written without range check, truncated to the width of its field.

    ``Raw(-1)`` sets all bits. Devices accept some values outside the range that they state, such as an infinite
    duration.
    """


class Value:
    """One number of a report.

    Parameters
    ----------
    report : Report
        Report that contains the number.
    usage : int
        Usage of the element, or of its collection if it chooses from a list.
    index : int
        Index among the elements with this usage.
    within : int, optional
        Usage of an enclosing collection.

    Attributes
    ----------
    usage : int
        Key of this number in `decode`.
    field : Field
        Field of the element.
    chooses : bool
        Whether the number is an index into the usages of `field`.
    low, high : int
        Range that `put` accepts: the logical range, or all representable numbers if the field has a null state; 0 and 1
        for a single bit.

    Raises
    ------
    ReportError
        If the report has no such element.
    """

    __slots__ = ("_end", "_mask", "_shift", "_sign", "_start", "_whole", "chooses", "field", "high", "low", "usage")

    def __init__(self, report: Report, usage: int, index: int = 0, within: int | None = None) -> None:
        found = _matching(_all_values(report), usage, within)
        if not 0 <= index < len(found):
            raise ReportError(f"{report} has {len(found)} elements of usage {usage:#010x}, so none at {index}.")
        self._place(found[index].field, usage, found[index]._start * 8 + found[index]._shift)

    @classmethod
    def _at(cls, field: Field, usage: int, bit: int) -> Value:
        value = cls.__new__(cls)
        value._place(field, usage, bit)
        return value

    def _place(self, field: Field, usage: int, bit: int) -> None:
        self.field, self.usage, self.chooses = field, usage, _chooses(field)
        self._start, self._shift = divmod(bit, 8)
        self._end = -(-(bit + field.size) // 8)
        self._mask = (1 << field.size) - 1
        self._sign = 1 << (field.size - 1) if field.signed and field.size > 1 else 0
        self._whole = self._shift == 0 and field.size % 8 == 0
        self.low, self.high = -self._sign, self._mask - self._sign
        if field.size > 1 and not field.null_state:
            self.low, self.high = max(self.low, field.logical_min), min(self.high, field.logical_max)

    def put(self, buffer: bytearray, value: int) -> None:
        """Write the number into a report, whose first byte is its id if reports are numbered.

        Raises
        ------
        ReportError
            If the number is out of range and not `Raw`, or the report is too short.
        """
        self._require_length(buffer)
        if not self.low <= value <= self.high and not isinstance(value, Raw):
            raise ReportError(f"usage {self.usage:#010x}: {value} is not in {self.low} to {self.high}.")
        bits = whole_number(value) & self._mask
        if not self._whole:
            others = int.from_bytes(buffer[self._start : self._end], "little") & ~(self._mask << self._shift)
            bits = others | bits << self._shift
        buffer[self._start : self._end] = bits.to_bytes(self._end - self._start, "little")

    def get(self, data: bytes | bytearray | memoryview) -> int:
        """Read the number from a report.

        Raises
        ------
        ReportError
            If the report is too short.
        """
        self._require_length(data)
        bits = int.from_bytes(data[self._start : self._end], "little") >> self._shift & self._mask
        return (bits ^ self._sign) - self._sign

    def _require_length(self, data: bytes | bytearray | memoryview) -> None:
        if len(data) < self._end:
            raise ReportError(
                f"usage {self.usage:#010x} ends at byte {self._end}, a report of {len(data)} bytes before."
            )

    @property
    def absent(self) -> int:
        """Number that means "no value": 0, or the first number outside the logical range if 0 is inside."""
        field = self.field
        needed = field.null_state or self.chooses
        if not needed or not field.logical_min <= 0 <= field.logical_max:
            return 0
        if field.logical_max < self._mask - self._sign:
            return field.logical_max + 1
        return field.logical_min - 1 if field.logical_min > -self._sign else 0

    def number_of(self, usage: int) -> int:
        """Return the number that selects `usage` from the list of the field; `absent` for usage 0.

        Raises
        ------
        ReportError
            If the list does not contain the usage.
        """
        if usage == 0:
            return self.absent
        if usage in self.field.usages:
            number = self.field.logical_min + self.field.usages.index(usage)
            if -self._sign <= number <= self._mask - self._sign:
                return number
        raise ReportError(f"usage {self.usage:#010x}: the device offers no {usage:#010x} there.")


def encode(report: Report, values: Mapping[Key, int | Iterable[int]]) -> bytes:
    """Encode a report, with its id in front if the device numbers its reports.

    Parameters
    ----------
    report : Report
        Report to encode.
    values : mapping
        Key to number; several numbers for several elements with one usage; the chosen usage or usages for a list.
        Elements that are not mentioned are 0, or "no value" if the field can represent it.

    Raises
    ------
    ReportError
        If the report has no such usage, fewer elements of it, or a number is out of range.
    """
    buffer = bytearray(report.length)
    if report.id:
        buffer[0] = report.id
    places = _all_values(report)
    for place in places:
        if place.absent:
            place.put(buffer, Raw(place.absent))
    for key, given in values.items():
        within, usage = key if isinstance(key, tuple) else (None, key)
        numbers = list(given) if isinstance(given, Iterable) else [given]
        found = _matching(places, usage, within)
        if not found:
            _put_bits(report, buffer, [p for p in places if within is None or p.field.inside(within)], usage, numbers)
        elif len(numbers) > len(found):
            raise ReportError(f"{report} has {len(found)} elements of usage {usage:#010x}, not {len(numbers)}.")
        for place, number in zip(found, numbers, strict=False):
            chosen = place.chooses and not isinstance(number, Raw)
            place.put(buffer, Raw(place.number_of(number)) if chosen else number)
    return bytes(buffer)


def decode(report: Report, data: bytes | bytearray | memoryview) -> dict[int, int | tuple[int, ...]]:
    """Decode a report.

    Parameters
    ----------
    report : Report
        Report to decode.
    data : bytes
        At least as many bytes as the report has; surplus bytes are ignored.

    Returns
    -------
    dict
        Usage to number, or to a tuple if the usage occurs more than once. For an element that chooses from a list, the
        usage of its collection to the chosen usage, 0 for none. Padding and elements without a usage are left out.

    Raises
    ------
    ReportError
        If it is too short or another report.
    """
    if len(data) < report.length:
        raise ReportError(f"{report} has {report.length} bytes, not {len(data)}.")
    if report.id and data[0] != report.id:
        raise ReportError(f"{report}: the data begin with {data[0]}.")
    found: dict[int, list[int]] = {}
    for place in _all_values(report):
        number = place.get(data)
        if place.chooses:
            index = number - place.field.logical_min
            number = place.field.usages[index] if 0 <= index < len(place.field.usages) else 0
        found.setdefault(place.usage, []).append(number)
    return {usage: tuple(numbers) if len(numbers) > 1 else numbers[0] for usage, numbers in found.items()}


def _chooses(field: Field) -> bool:
    """Return True if the elements choose from a list. An array of one usage with many values is a number."""
    return field.array and (len(field.usages) > 1 or field.logical_min == field.logical_max)


def _all_values(report: Report) -> list[Value]:
    """Return every element that has a key, in bit order."""
    found = []
    for field in report.fields:
        if field.constant or not field.usages:
            continue
        for i in range(field.count):
            if _chooses(field):
                usage = field.collections[-1].usage if field.collections else 0
            else:
                usage = field.usages[0 if field.array else i]
            found.append(Value._at(field, usage, field.offset + i * field.size))
    return found


def _matching(places: list[Value], usage: int, within: int | None) -> list[Value]:
    return [p for p in places if p.usage == usage and (within is None or p.field.inside(within))]


def _put_bits(report: Report, buffer: bytearray, places: list[Value], collection: int, chosen: list[int]) -> None:
    """Set single bits that are directly in a collection, by their usages."""
    bits = [p for p in places if p.field.size == 1 and not p.field.array]
    bits = [p for p in bits if p.field.collections and p.field.collections[-1].usage == collection]
    if not bits:
        raise ReportError(f"{report} has no usage {collection:#010x}.")
    for usage in chosen:
        found = _matching(bits, usage, None)
        if not found:
            raise ReportError(f"{report}, usage {collection:#010x}: the device offers no {usage:#010x} there.")
        found[0].put(buffer, 1)
