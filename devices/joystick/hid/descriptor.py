"""Parser of HID report descriptors.

Device Class Definition for Human Interface Devices 1.11, sections 5 and 6.2.2. Where the text is ambiguous, the parser
follows the Linux kernel, with which manufacturers test their devices:

- A maximum is signed only if its minimum is negative; ``25 FF`` after a minimum of 0 is 255, not -1.
- A usage of one or two bytes gets the usage page in force at its main item, unless a later usage of the list was named
  under that page; then it keeps the page under which it was named. A four-byte usage includes its page.
- A variable field with more elements than usages repeats the last one; surplus usages are dropped.

Of usages between delimiters, which are alternative names of one control, the first is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice, repeat

from devices.joystick.hid import items
from devices.joystick.hid.items import DescriptorError, Item, read_items
from devices.joystick.hid.layout import Collection, Field, Report, ReportDescriptor, ReportType

__all__ = [
    "Collection",
    "DescriptorError",
    "Field",
    "Report",
    "ReportDescriptor",
    "ReportType",
    "parse_descriptor",
]

LONGEST_REPORT = 0xFFFF
"""Maximum length of a report [byte], the limit of one control transfer."""
MOST_USAGES = 1 << 20
"""Maximum number of usages in all fields of a descriptor, with ranges expanded; devices have hundreds."""
DEEPEST = 64
"""Maximum depth of nested collections and of pushed global states. Devices need four."""

_REPORT_TYPES = {
    items.INPUT: ReportType.INPUT,
    items.OUTPUT: ReportType.OUTPUT,
    items.FEATURE: ReportType.FEATURE,
}
_GLOBALS = {
    items.USAGE_PAGE,
    items.LOGICAL_MINIMUM,
    items.LOGICAL_MAXIMUM,
    items.PHYSICAL_MINIMUM,
    items.PHYSICAL_MAXIMUM,
    items.UNIT_EXPONENT,
    items.UNIT,
    items.REPORT_SIZE,
    items.REPORT_ID,
    items.REPORT_COUNT,
}
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


@dataclass(frozen=True, slots=True)
class _Usages:
    """Usage or range of usages: 32-bit if `page` is None, otherwise 16-bit and named under `page`."""

    first: int
    last: int
    page: int | None

    def under(self, page: int) -> range:
        """Return the 32-bit usages, on the page `page` unless they include their own page."""
        base = 0 if self.page is None else page << 16
        return range(base | self.first, (base | self.last) + 1)


class _Locals:
    """Local items (usages), which apply to the next main item only."""

    def __init__(self) -> None:
        self._usages: list[_Usages] = []
        self._ends: dict[int, Item] = {}
        self._delimited = False
        self._chosen = False

    def add(self, item: Item, page: int) -> None:
        """Process a local item, named under the usage page `page`. Strings and designators are ignored."""
        if item.tag == items.USAGE:
            self._add(item, item, page)
        elif item.tag in {items.USAGE_MINIMUM, items.USAGE_MAXIMUM}:
            self._ends[item.tag] = item
            if len(self._ends) == 2:
                self._add(self._ends[items.USAGE_MINIMUM], self._ends[items.USAGE_MAXIMUM], page)
                self._ends.clear()
        elif item.tag == items.DELIMITER:
            opens = item.unsigned == 1
            if opens == self._delimited:
                raise item.error("delimiters do not come in pairs")
            self._delimited, self._chosen = opens, False

    def usages(self, item: Item, page: int) -> list[range]:
        """Return the usages for the main item `item`, at which the usage page is `page`."""
        if self._ends:
            raise item.error("a usage minimum or maximum before it stands alone")
        if self._delimited:
            raise item.error("a delimiter before it is not closed")
        pages = [entry.page for entry in self._usages]
        settled = len(pages) - pages[::-1].index(page) if page in pages else 0
        kept = [entry.under(entry.page or 0) for entry in self._usages[:settled]]
        return kept + [entry.under(page) for entry in self._usages[settled:]]

    def _add(self, first: Item, last: Item, page: int) -> None:
        if self._delimited and self._chosen:
            return
        self._chosen = True
        if len(first.data) <= 2 and len(last.data) <= 2:
            entry = _Usages(first.unsigned, last.unsigned, page)
        else:
            entry = _Usages(_whole(first, page), _whole(last, page), None)
        if entry.last < entry.first:
            raise last.error(f"a usage range from {entry.first:#x} to {entry.last:#x}")
        self._usages.append(entry)


def _whole(item: Item, page: int) -> int:
    return item.unsigned if len(item.data) == 4 else page << 16 | item.unsigned


class _Parser:
    """Single pass over the items of a descriptor that maintains the state table of the standard."""

    def __init__(self) -> None:
        self._globals: dict[int, Item] = {}
        self._pushed: list[dict[int, Item]] = []
        self._locals = _Locals()
        self._collections: list[tuple[Collection, ...]] = [()]
        self._begun = 0
        self._fields: dict[tuple[ReportType, int], list[Field]] = {}
        self._bits: dict[tuple[ReportType, int], int] = {}
        self._numbered = False
        self._usages_left = MOST_USAGES

    def parse(self, data: bytes) -> ReportDescriptor:
        for item in read_items(data):
            if item.is_main:
                self._take_main(item)
                self._locals = _Locals()
            elif item.is_global:
                self._take_global(item)
            else:
                self._locals.add(item, self._number(items.USAGE_PAGE))
        if len(self._collections) > 1:
            raise DescriptorError(f"report descriptor, byte {len(data)}: ends inside a collection.")
        reports = [Report(*key, tuple(fields), -(-self._bits[key] // 8)) for key, fields in self._fields.items()]
        return ReportDescriptor(tuple(reports), self._numbered)

    def _take_main(self, item: Item) -> None:
        if item.tag in _REPORT_TYPES:
            self._add_field(item, _REPORT_TYPES[item.tag])
        elif item.tag == items.COLLECTION:
            if len(self._collections) > DEEPEST:
                raise item.error(f"more than {DEEPEST} collections inside each other")
            usage = next(chain.from_iterable(self._locals.usages(item, self._number(items.USAGE_PAGE))), 0)
            self._begun += 1
            self._collections.append((*self._collections[-1], Collection(item.unsigned, usage, self._begun)))
        elif item.tag == items.END_COLLECTION:
            if len(self._collections) == 1:
                raise item.error("the end of a collection that was not begun")
            self._collections.pop()

    def _take_global(self, item: Item) -> None:
        if item.tag == items.PUSH:
            if len(self._pushed) == DEEPEST:
                raise item.error(f"more than {DEEPEST} pushes")
            self._pushed.append(self._globals.copy())
        elif item.tag == items.POP:
            if not self._pushed:
                raise item.error("a pop without a push")
            self._globals = self._pushed.pop()
        elif item.tag not in _GLOBALS:
            raise item.error(f"an unknown global item {item.tag:#04x}")
        else:
            self._check_global(item)
            self._globals[item.tag] = item

    def _check_global(self, item: Item) -> None:
        if item.tag == items.USAGE_PAGE and item.unsigned > 0xFFFF:
            raise item.error(f"a usage page {item.unsigned:#x}; at most 0xffff")
        if item.tag == items.REPORT_ID:
            if not 1 <= item.unsigned <= 0xFF:
                raise item.error(f"a report id {item.unsigned}; allowed are 1 to 255")
            if self._fields and not self._numbered:
                raise item.error("a report id after fields without one")
            self._numbered = True

    def _number(self, tag: int) -> int:
        """Return the present unsigned value of a global item, 0 if it was never stated."""
        return self._globals[tag].unsigned if tag in self._globals else 0

    def _range(self, minimum: int, maximum: int) -> tuple[int, int]:
        low = self._globals[minimum].signed if minimum in self._globals else 0
        if maximum not in self._globals:
            return low, 0
        return low, self._globals[maximum].signed if low < 0 else self._globals[maximum].unsigned

    def _unit_exponent(self) -> int:
        number = self._number(items.UNIT_EXPONENT)
        if number > 0x0F:  # manufacturers also write a signed byte instead of the four bits of the standard
            return self._globals[items.UNIT_EXPONENT].signed
        return number - 16 if number > 7 else number

    def _add_field(self, item: Item, report_type: ReportType) -> None:
        flags, size, count = item.unsigned, self._number(items.REPORT_SIZE), self._number(items.REPORT_COUNT)
        report_id = self._number(items.REPORT_ID)
        usages = self._locals.usages(item, self._number(items.USAGE_PAGE))
        if self._numbered and not report_id:
            raise item.error("a field without a report id, while others have one")
        if not size * count:
            return
        key = report_type, report_id
        offset = self._bits.get(key, 8 if self._numbered else 0)
        if offset + size * count > LONGEST_REPORT * 8:
            raise item.error(f"{count} elements of {size} bits; a report has at most {LONGEST_REPORT} bytes")
        logical = self._range(items.LOGICAL_MINIMUM, items.LOGICAL_MAXIMUM)
        if not flags & _CONSTANT and logical[1] < logical[0]:
            raise item.error(f"a logical range from {logical[0]} to {logical[1]}")
        physical = self._range(items.PHYSICAL_MINIMUM, items.PHYSICAL_MAXIMUM)
        array = not flags & (_CONSTANT | _VARIABLE)
        field = Field(
            report_type=report_type,
            report_id=report_id,
            offset=offset,
            size=size,
            count=count,
            usages=self._written_out(item, usages, None if array else count),
            array=array,
            constant=bool(flags & _CONSTANT),
            relative=bool(flags & _RELATIVE),
            null_state=bool(flags & _NULL_STATE),
            logical_min=logical[0],
            logical_max=logical[1],
            physical_min=physical[0],
            physical_max=physical[1],
            unit=self._number(items.UNIT),
            unit_exponent=self._unit_exponent(),
            collections=self._collections[-1],
        )
        self._fields.setdefault(key, []).append(field)
        self._bits[key] = offset + size * count

    def _written_out(self, item: Item, usages: list[range], count: int | None) -> tuple[int, ...]:
        """Return the usages of all `count` elements of a field, or of an array (`count` None)."""
        needed = sum(map(len, usages)) if count is None else count if usages else 0
        self._usages_left -= needed
        if self._usages_left < 0:
            raise item.error(f"more than {MOST_USAGES} usages in all")
        whole: Iterator[int] = chain.from_iterable(usages)
        if count is not None and usages:
            whole = chain(whole, repeat(usages[-1][-1]))
        return tuple(islice(whole, needed))
