"""Data model of HID reports: reports, fields, collections.

Device Class Definition for Human Interface Devices 1.11, section 6.2.2. Built by `devices.joystick.hid.descriptor`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum

from devices.joystick.hid.items import DescriptorError


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
    physical_min, physical_max : int
        Physical values of the logical range in `unit`; both 0 if unspecified. May be inherited from an earlier field.
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
    physical_min: int
    physical_max: int
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

    def report(self, type: ReportType, id: int) -> Report:  # noqa: A002 (names of the standard)
        """Return a report by its number.

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
        """Return the first report with a field in a collection of this usage."""
        for report in self.reports:
            if report.type is type and any(field.inside(collection_usage) for field in report.fields):
                return report
        return None
