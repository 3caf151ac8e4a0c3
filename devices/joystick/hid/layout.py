"""What a HID device says of its reports: reports, fields, collections.

Device Class Definition for Human Interface Devices 1.11, section 6.2.2. Made by `devices.joystick.hid.descriptor`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum

from devices.joystick.hid.items import DescriptorError


class ReportType(StrEnum):
    """Which way a report goes."""

    INPUT = "input"
    OUTPUT = "output"
    FEATURE = "feature"


@dataclass(frozen=True, slots=True)
class Collection:
    """A group of fields with a meaning of its own.

    Attributes
    ----------
    kind : int
        0 physical, 1 application, 2 logical, 3 report, 4 named array, 5 usage switch, 6 usage modifier.
    usage : int
        What it is, page << 16 | id; 0 if it was not said.
    number : int
        The how-manieth of the descriptor it is: it tells two collections for the same purpose apart.
    """

    kind: int
    usage: int
    number: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Field:
    """One or more elements of the same size in a row.

    Attributes
    ----------
    report_type : ReportType
        Which way the report goes.
    report_id : int
        Number of the report; 0 if the device does not number its reports.
    offset : int
        Of the first element from the beginning of the report, which is its number where it has one [bit].
    size : int
        Of one element [bit].
    count : int
        Number of elements.
    usages : tuple of int
        One per element of a variable or constant field, the last one repeated if there are fewer, empty if there are
        none; of an array the list from which its elements choose.
    array : bool
        Whether every element holds the number of one of the usages, and not a value.
    constant : bool
        Whether the elements mean nothing (padding).
    relative : bool
        Whether the values are changes since the last report.
    null_state : bool
        Whether a value outside the logical range says that there is none.
    logical_min, logical_max : int
        Range of the numbers on the wire.
    physical_min, physical_max : int
        What the logical range stands for, in `unit`; both 0 if it was not said. May be left over from an earlier field.
    unit : int
        The HID unit code; 0 if there is none.
    unit_exponent : int
        Power of ten by which the physical values are to be multiplied.
    collections : tuple of Collection
        Those around the field, outermost first.
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
    physical_min: int
    physical_max: int
    unit: int
    unit_exponent: int
    collections: tuple[Collection, ...]

    @property
    def signed(self) -> bool:
        """Whether the numbers on the wire are two's complements."""
        return self.logical_min < 0

    def inside(self, collection_usage: int) -> bool:
        """Tell whether the field lies in a collection of this usage, at any depth."""
        return any(collection.usage == collection_usage for collection in self.collections)


@dataclass(frozen=True)
class Report:
    """One report: what travels in one transfer.

    Attributes
    ----------
    type : ReportType
        Which way it goes.
    id : int
        Its number, the first byte; 0 if the device does not number its reports.
    fields : tuple of Field
        In the order of their bits.
    length : int
        Including the number [byte].
    """

    type: ReportType
    id: int
    fields: tuple[Field, ...]
    length: int

    def field(self, usage: int, within: int | None = None) -> Field | None:
        """Return the first field with this usage, not padding, in a collection of the usage `within` if given."""
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
        In the order in which they first appear.
    numbered : bool
        Whether the first byte of every report is its number.
    """

    reports: tuple[Report, ...]
    numbered: bool

    def report(self, type: ReportType, id: int) -> Report:  # noqa: A002 (the words of the standard)
        """Return one report by its number.

        Raises
        ------
        DescriptorError
            If the device has no such report.
        """
        for report in self.reports:
            if report.type is type and report.id == id:
                return report
        raise DescriptorError(f"the device has no {type} report {id}.")

    def of(self, type: ReportType, collection_usage: int) -> Report | None:  # noqa: A002
        """Return the first report of which a field lies in a collection of this usage."""
        for report in self.reports:
            if report.type is type and any(field.inside(collection_usage) for field in report.fields):
                return report
        return None
