"""HID report descriptors: their data model, and their parser.

Device Class Definition for Human Interface Devices 1.11, sections 5 and 6.2.2. Where the text is ambiguous, the parser
follows the Linux kernel, with which manufacturers test their devices:

- A maximum is signed only if its minimum is negative; ``25 FF`` after a minimum of 0 is 255, not -1.
- A usage of one or two bytes gets the usage page in force at its main item, unless a later usage of the list was named
  under that page; then it keeps the page under which it was named. A four-byte usage includes its page.
- A variable field with more elements than usages repeats the last one; surplus usages are dropped.

Of usages between delimiters, which are alternative names of one control, the first is used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from itertools import chain, islice, repeat

from devices.joystick.hid import usages as use
from haptics.errors import HapticError


class DescriptorError(HapticError):
    """Invalid report descriptor, or one beyond the limits of the parser.

    The message states the byte offset and the reason.
    """


# --- data model -------------------------------------------------------------------------------------------------------


class ReportType(StrEnum):
    """Direction and kind of a report."""

    INPUT = "input"
    OUTPUT = "output"
    FEATURE = "feature"


@dataclass(frozen=True, slots=True)
class Collection:
    """Collection of fields.

    Attributes
    ----------
    kind : int
        0 physical, 1 application, 2 logical, 3 report, 4 named array, 5 usage switch, 6 usage modifier.
    usage : int
        Usage, page << 16 | id; 0 if unspecified.
    number : int
        Ordinal in the descriptor, from 1. Distinguishes two collections with the same usage.
    """

    kind: int
    usage: int
    number: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Field:
    """One or more consecutive elements of the same size.

    Attributes
    ----------
    report_type : ReportType
        Type of the report.
    report_id : int
        Number of the report; 0 if the device does not number its reports.
    offset : int
        Position of the first element in the report, counted from the report number if present [bit].
    size : int
        Size of one element [bit].
    count : int
        Number of elements.
    usages : tuple of int
        One per element of a variable or constant field, with the last one repeated if there are fewer, empty without
        usages. For an array, the list from which its elements choose.
    array : bool
        Whether every element holds the index of a usage instead of a value.
    constant : bool
        Whether the elements are padding.
    relative : bool
        Whether the values are changes since the last report.
    null_state : bool
        Whether a value outside the logical range means "no value".
    logical_min, logical_max : int
        Range of the transmitted numbers.
    unit : int
        HID unit code; 0 without a unit.
    unit_exponent : int
        Power of ten that scales the physical values.
    collections : tuple of Collection
        Collections around the field, outermost first.
    """

    report_type: ReportType
    report_id: int
    offset: int
    size: int
    count: int
    usages: tuple[int, ...]
    array: bool
    constant: bool
    relative: bool
    null_state: bool
    logical_min: int
    logical_max: int
    unit: int
    unit_exponent: int
    collections: tuple[Collection, ...]

    @property
    def signed(self) -> bool:
        """Whether the transmitted numbers are two's complements."""
        return self.logical_min < 0

    def inside(self, collection_usage: int) -> bool:
        """Return True if the field is in a collection with this usage, at any depth."""
        return any(collection.usage == collection_usage for collection in self.collections)


@dataclass(frozen=True)
class Report:
    """Report: the data of one transfer.

    Attributes
    ----------
    type : ReportType
        Type of the report.
    id : int
        Report number, the first byte; 0 if the device does not number its reports.
    fields : tuple of Field
        Fields in the order of their bits.
    length : int
        Length including the report number [byte].
    """

    type: ReportType
    id: int
    fields: tuple[Field, ...]
    length: int

    def __str__(self) -> str:
        return f"{self.type} report {self.id}"

    def field(self, usage: int, within: int | None = None) -> Field | None:
        """Return the first non-constant field with this usage, within a collection of usage `within` if given."""
        for field in self.fields:
            if usage in field.usages and not field.constant and (within is None or field.inside(within)):
                return field
        return None


@dataclass(frozen=True)
class ReportDescriptor:
    """All reports of one interface.

    Attributes
    ----------
    reports : tuple of Report
        Reports in the order in which they first appear.
    numbered : bool
        Whether the first byte of every report is its number.
    """

    reports: tuple[Report, ...]
    numbered: bool

    def of(self, type: ReportType, collection_usage: int) -> Report | None:  # noqa: A002
        """Return the first report with a field in a collection of this usage."""
        for report in self.reports:
            if report.type is type and any(field.inside(collection_usage) for field in report.fields):
                return report
        return None


# --- items ------------------------------------------------------------------------------------------------------------

_LONGEST_DESCRIPTOR = 0xFFFF  # maximum length of a descriptor [byte]; the bus transmits the length as a 16-bit number
_LONG_ITEM = 0xFE
_SIZES = (0, 1, 2, 4)


class Tag(IntEnum):
    """Tag and type of an item: its prefix without the size."""

    INPUT, OUTPUT, FEATURE, COLLECTION, END_COLLECTION = 0x80, 0x90, 0xB0, 0xA0, 0xC0
    USAGE_PAGE, LOGICAL_MINIMUM, LOGICAL_MAXIMUM, PHYSICAL_MINIMUM, PHYSICAL_MAXIMUM = 0x04, 0x14, 0x24, 0x34, 0x44
    UNIT_EXPONENT, UNIT, REPORT_SIZE, REPORT_ID, REPORT_COUNT, PUSH, POP = 0x54, 0x64, 0x74, 0x84, 0x94, 0xA4, 0xB4
    USAGE, USAGE_MINIMUM, USAGE_MAXIMUM, DELIMITER = 0x08, 0x18, 0x28, 0xA8


_TYPE, _MAIN, _GLOBAL = 0x0C, 0x00, 0x04


@dataclass(frozen=True, slots=True)
class Item:
    """Short item of a descriptor.

    Attributes
    ----------
    offset : int
        Position in the descriptor [byte].
    tag : int
        Prefix byte without the size: ``USAGE``, ``INPUT`` ...
    data : bytes
        0, 1, 2 or 4 bytes.
    """

    offset: int
    tag: int
    data: bytes

    @property
    def unsigned(self) -> int:
        """Data as an unsigned number."""
        return int.from_bytes(self.data, "little")

    @property
    def signed(self) -> int:
        """Data as a two's complement number of the same size."""
        return int.from_bytes(self.data, "little", signed=True)

    def error(self, reason: str) -> DescriptorError:
        """Return an error that refers to this item."""
        return DescriptorError(f"report descriptor, byte {self.offset}: {reason}.")


def read_items(data: bytes) -> Iterator[Item]:
    """Yield the short items of a descriptor in order.

    Raises
    ------
    DescriptorError
        If the last item is truncated or the descriptor is longer than a device can state.
    """
    if len(data) > _LONGEST_DESCRIPTOR:
        raise DescriptorError(f"report descriptor of {len(data)} bytes: at most {_LONGEST_DESCRIPTOR}.")
    offset = 0
    while offset < len(data):
        prefix = data[offset]
        start, size = offset + 1, _SIZES[prefix & 3]
        if prefix == _LONG_ITEM:  # two data bytes: size and tag of the long data
            size += data[start] if start < len(data) else 0
        end = start + size
        if end > len(data):
            raise DescriptorError(f"report descriptor, byte {offset}: an item of {size} bytes is cut off.")
        if prefix != _LONG_ITEM:
            yield Item(offset, prefix & ~3, data[start:end])
        offset = end


# --- parser -----------------------------------------------------------------------------------------------------------

LONGEST_REPORT = 0xFFFF
"""Maximum length of a report [byte], the limit of one control transfer."""
_MOST_USAGES = 1 << 20  # maximum number of usages in a descriptor, with ranges expanded; devices have hundreds
_DEEPEST = 64  # maximum depth of nested collections and of pushed global states. Devices need four

_REPORT_TYPES: dict[int, ReportType] = {
    Tag.INPUT: ReportType.INPUT,
    Tag.OUTPUT: ReportType.OUTPUT,
    Tag.FEATURE: ReportType.FEATURE,
}
_GLOBALS = frozenset(tag for tag in Tag if tag & _TYPE == _GLOBAL) - {Tag.PUSH, Tag.POP}
_CONSTANT, _VARIABLE, _RELATIVE, _NULL_STATE = 0x01, 0x02, 0x04, 0x40


def parse_descriptor(data: bytes) -> ReportDescriptor:
    """Parse a report descriptor.

    Time and memory are bounded for any input, regardless of the counts and ranges that it states.

    Parameters
    ----------
    data : bytes
        Report descriptor.

    Raises
    ------
    DescriptorError
        If it is invalid; states the byte offset and the reason.
    """
    return _Parser().parse(bytes(data))


class _Parser:
    """Single pass over the items of a descriptor that maintains the state table of the standard."""

    def __init__(self) -> None:
        self._globals: dict[int, Item] = {}
        self._pushed: list[dict[int, Item]] = []
        self._collections: list[tuple[Collection, ...]] = [()]
        self._begun = 0
        self._fields: dict[tuple[ReportType, int], list[Field]] = {}
        self._bits: dict[tuple[ReportType, int], int] = {}
        self._numbered = False
        self._usages_left = _MOST_USAGES
        self._clear_locals()

    def _clear_locals(self) -> None:
        """Forget the local items, which apply to one main item only."""
        self._usages: list[tuple[int, int, int | None]] = []  # first, last; 16 bits under a page, or 32 without
        self._ends: dict[int, Item] = {}
        self._delimited = self._chosen = False

    def parse(self, data: bytes) -> ReportDescriptor:
        for item in read_items(data):
            kind, page = item.tag & _TYPE, self._number(Tag.USAGE_PAGE)
            if kind == _MAIN:
                self._process_main(item, page)
                self._clear_locals()
            elif kind == _GLOBAL:
                self._process_global(item)
            else:
                self._process_local(item, page)
        if len(self._collections) > 1:
            raise DescriptorError(f"report descriptor, byte {len(data)}: ends inside a collection.")
        reports = [Report(*key, tuple(fields), -(-self._bits[key] // 8)) for key, fields in self._fields.items()]
        return ReportDescriptor(tuple(reports), self._numbered)

    def _process_main(self, item: Item, page: int) -> None:
        if item.tag in _REPORT_TYPES:
            self._add_field(item, _REPORT_TYPES[item.tag], self._named_usages(item, page))
        elif item.tag == Tag.COLLECTION:
            if len(self._collections) > _DEEPEST:
                raise item.error(f"more than {_DEEPEST} collections inside each other")
            usage = next(chain.from_iterable(self._named_usages(item, page)), 0)
            self._begun += 1
            self._collections.append((*self._collections[-1], Collection(item.unsigned, usage, self._begun)))
        elif item.tag == Tag.END_COLLECTION:
            if len(self._collections) == 1:
                raise item.error("the end of a collection that was not begun")
            self._collections.pop()

    def _process_global(self, item: Item) -> None:
        if item.tag == Tag.PUSH:
            if len(self._pushed) == _DEEPEST:
                raise item.error(f"more than {_DEEPEST} pushes")
            self._pushed.append(self._globals.copy())
        elif item.tag == Tag.POP:
            if not self._pushed:
                raise item.error("a pop without a push")
            self._globals = self._pushed.pop()
        elif item.tag not in _GLOBALS:
            raise item.error(f"an unknown global item {item.tag:#04x}")
        elif item.tag == Tag.USAGE_PAGE and item.unsigned > 0xFFFF:
            raise item.error(f"a usage page {item.unsigned:#x}; at most 0xffff")
        elif item.tag == Tag.REPORT_ID and not 1 <= item.unsigned <= 0xFF:
            raise item.error(f"a report id {item.unsigned}; allowed are 1 to 255")
        elif item.tag == Tag.REPORT_ID and self._fields and not self._numbered:
            raise item.error("a report id after fields without one")
        else:
            self._numbered |= item.tag == Tag.REPORT_ID
            self._globals[item.tag] = item

    def _process_local(self, item: Item, page: int) -> None:
        """Process a local item, named under the usage page `page`. Strings and designators are ignored."""
        if item.tag == Tag.DELIMITER:
            opens = item.unsigned == 1
            if opens == self._delimited:
                raise item.error("delimiters do not come in pairs")
            self._delimited, self._chosen = opens, False
            return
        ends = [item, item] if item.tag == Tag.USAGE else []
        if item.tag in {Tag.USAGE_MINIMUM, Tag.USAGE_MAXIMUM}:
            self._ends[item.tag] = item
            if len(self._ends) == 2:
                ends = [self._ends[Tag.USAGE_MINIMUM], self._ends[Tag.USAGE_MAXIMUM]]
                self._ends.clear()
        if not ends or (self._delimited and self._chosen):
            return
        self._chosen = True
        whole = any(len(end.data) == 4 for end in ends)
        first, last = (page << 16 | end.unsigned if whole and len(end.data) < 4 else end.unsigned for end in ends)
        if last < first:
            raise ends[1].error(f"a usage range from {first:#x} to {last:#x}")
        self._usages.append((first, last, None if whole else page))

    def _named_usages(self, item: Item, page: int) -> list[range]:
        """Return the 32-bit usages for the main item `item`, at which the usage page is `page`."""
        if self._ends:
            raise item.error("a usage minimum or maximum before it stands alone")
        if self._delimited:
            raise item.error("a delimiter before it is not closed")
        pages = [named for _, _, named in self._usages]
        settled = len(pages) - pages[::-1].index(page) if page in pages else 0
        found = []
        for k, (first, last, named) in enumerate(self._usages):
            base = 0 if named is None else (named if k < settled else page) << 16
            found.append(range(base | first, (base | last) + 1))
        return found

    def _number(self, tag: int) -> int:
        """Return the present unsigned value of a global item, 0 if it was never stated."""
        return self._globals[tag].unsigned if tag in self._globals else 0

    def _add_field(self, item: Item, report_type: ReportType, usages: list[range]) -> None:
        flags, size, count = item.unsigned, self._number(Tag.REPORT_SIZE), self._number(Tag.REPORT_COUNT)
        report_id = self._number(Tag.REPORT_ID)
        if self._numbered and not report_id:
            raise item.error("a field without a report id, while others have one")
        if not size * count:
            return
        key = report_type, report_id
        offset = self._bits.get(key, 8 if self._numbered else 0)
        if offset + size * count > LONGEST_REPORT * 8:
            raise item.error(f"{count} elements of {size} bits; a report has at most {LONGEST_REPORT} bytes")
        low = self._globals[Tag.LOGICAL_MINIMUM].signed if Tag.LOGICAL_MINIMUM in self._globals else 0
        high = self._number(Tag.LOGICAL_MAXIMUM)
        if low < 0 and Tag.LOGICAL_MAXIMUM in self._globals:
            high = self._globals[Tag.LOGICAL_MAXIMUM].signed
        if not flags & _CONSTANT and high < low:
            raise item.error(f"a logical range from {low} to {high}")
        array = not flags & (_CONSTANT | _VARIABLE)
        exponent = self._number(Tag.UNIT_EXPONENT)
        if exponent > 0x0F:  # manufacturers also write a signed byte instead of the four bits of the standard
            exponent = self._globals[Tag.UNIT_EXPONENT].signed
        elif exponent > 7:
            exponent -= 16
        needed = sum(map(len, usages)) if array else count if usages else 0
        self._usages_left -= needed
        if self._usages_left < 0:
            raise item.error(f"more than {_MOST_USAGES} usages in all")
        whole: Iterator[int] = chain.from_iterable(usages)
        if usages and not array:
            whole = chain(whole, repeat(usages[-1][-1]))
        field = Field(
            report_type=report_type,
            report_id=report_id,
            offset=offset,
            size=size,
            count=count,
            usages=tuple(islice(whole, needed)),
            array=array,
            constant=bool(flags & _CONSTANT),
            relative=bool(flags & _RELATIVE),
            null_state=bool(flags & _NULL_STATE),
            logical_min=low,
            logical_max=high,
            unit=self._number(Tag.UNIT),
            unit_exponent=exponent,
            collections=self._collections[-1],
        )
        self._fields.setdefault(key, []).append(field)
        self._bits[key] = offset + size * count


# --- axes with a motor ------------------------------------------------------------------------------------------------


def actuated_axes(descriptor: ReportDescriptor) -> tuple[int, ...]:
    """Return the usages of the axes with a motor; empty if the descriptor does not state them.

    Without Axes Enable, the usual axes are assumed, as many as the direction has ordinals. With Axes Enable, the number
    of ordinals is ignored, because one angle suffices for a direction in the plane.
    """
    report = descriptor.of(ReportType.OUTPUT, use.SET_EFFECT)
    if report is None:
        return ()
    return _listed(report, use.AXES_ENABLE) or (use.X, use.Y)[: len(_listed(report, use.DIRECTION))]


def _listed(report: Report, collection: int) -> tuple[int, ...]:
    """Return the distinct usages in a collection of a report, without padding."""
    fields = (field for field in report.fields if field.inside(collection) and not field.constant)
    return tuple(dict.fromkeys(usage for field in fields for usage in field.usages))
