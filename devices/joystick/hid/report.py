"""Encoding and decoding of HID reports by usage.

`encode` and `decode` process whole reports. `Value` accesses one number at a precomputed position, for streaming::

    report = descriptor.of(ReportType.OUTPUT, usages.SET_CONSTANT_FORCE)
    buffer = bytearray(encode(report, {usages.EFFECT_BLOCK_INDEX: 1}))
    magnitude = value_of(report, usages.MAGNITUDE)
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
    """One number of a report; `value_of` finds it by its usage.

    Parameters
    ----------
    field : Field
        Field of the element.
    usage : int
        Usage of the element, or of its collection if it chooses from a list.
    bit : int
        Position of the element in the report.

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
    """

    __slots__ = ("_end", "_mask", "_shift", "_sign", "_start", "_whole", "chooses", "field", "high", "low", "usage")

    def __init__(self, field: Field, usage: int, bit: int) -> None:
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
            If the number is out of range and not `Raw`.
        """
        if not self.low <= value <= self.high and not isinstance(value, Raw):
            raise ReportError(f"usage {self.usage:#010x}: {value} is not in {self.low} to {self.high}.")
        bits = whole_number(value) & self._mask
        if not self._whole:
            others = int.from_bytes(buffer[self._start : self._end], "little") & ~(self._mask << self._shift)
            bits = others | bits << self._shift
        buffer[self._start : self._end] = bits.to_bytes(self._end - self._start, "little")

    def get(self, data: bytes | bytearray | memoryview) -> int:
        """Read the number from a report of at least the length that the descriptor states."""
        bits = int.from_bytes(data[self._start : self._end], "little") >> self._shift & self._mask
        return (bits ^ self._sign) - self._sign

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


def values_of(report: Report, usage: int | None = None, within: int | None = None) -> list[Value]:
    """Return the elements of a report that have a key, in bit order: all, or those with this usage.

    Parameters
    ----------
    report : Report
        Report that contains the elements.
    usage : int, optional
        Usage of the elements, or of their collection if they choose from a list.
    within : int, optional
        Usage of an enclosing collection.
    """
    found = []
    for field in report.fields:
        if field.constant or not field.usages:
            continue
        for i in range(field.count):
            if _chooses(field):
                own = field.collections[-1].usage if field.collections else 0
            else:
                own = field.usages[0 if field.array else i]
            found.append(Value(field, own, field.offset + i * field.size))
    return found if usage is None else _matching(found, usage, within)


def value_of(report: Report, usage: int, index: int = 0, within: int | None = None) -> Value:
    """Return element number `index` with this usage; see `values_of`.

    Raises
    ------
    ReportError
        If the report has no such element.
    """
    found = values_of(report, usage, within)
    if not 0 <= index < len(found):
        raise ReportError(f"{report} has {len(found)} elements of usage {usage:#010x}, so none at {index}.")
    return found[index]


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
    places = values_of(report)
    for place in places:
        if place.absent:
            place.put(buffer, Raw(place.absent))
    for key, given in values.items():
        within, usage = key if isinstance(key, tuple) else (None, key)
        numbers = list(given) if isinstance(given, Iterable) else [given]
        found = _matching(places, usage, within)
        if not found:  # single bits that are directly in a collection, each named by its usage
            bits = [p for p in places if p.field.size == 1 and not p.field.array and p.field.collections]
            bits = [p for p in bits if p.field.collections[-1].usage == usage]
            bits = [p for p in bits if within is None or p.field.inside(within)]
            if not bits:
                raise ReportError(f"{report} has no usage {usage:#010x}.")
            for number in numbers:
                chosen = _matching(bits, number, None)
                if not chosen:
                    raise ReportError(f"{report}, usage {usage:#010x}: the device offers no {number:#010x} there.")
                chosen[0].put(buffer, 1)
        elif len(numbers) > len(found):
            raise ReportError(f"{report} has {len(found)} elements of usage {usage:#010x}, not {len(numbers)}.")
        for place, number in zip(found, numbers, strict=False):
            listed = place.chooses and not isinstance(number, Raw)
            place.put(buffer, Raw(place.number_of(number)) if listed else number)
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
    for place in values_of(report):
        number = place.get(data)
        if place.chooses:
            index = number - place.field.logical_min
            number = place.field.usages[index] if 0 <= index < len(place.field.usages) else 0
        found.setdefault(place.usage, []).append(number)
    return {usage: tuple(numbers) if len(numbers) > 1 else numbers[0] for usage, numbers in found.items()}


def _chooses(field: Field) -> bool:
    """Return True if the elements choose from a list. An array of one usage with many values is a number."""
    return field.array and (len(field.usages) > 1 or field.logical_min == field.logical_max)


def _matching(places: list[Value], usage: int, within: int | None) -> list[Value]:
    return [p for p in places if p.usage == usage and (within is None or p.field.inside(within))]
