"""Reductions: what a run without a clock comes down to, added up row by row in compiled code, so that no rows are kept.

A reduction is a part (`haptics.parts`) ``(record, first, following)``: it adds the rows number `first` to `following`
- 1 of a run to its record, which begins with `REDUCTION_FIELDS`, and finds each with `row_of`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from haptics.jit import inlined_kernel
from haptics.parts import address_of_part, record_at
from haptics.records import ROW, Rows

REDUCTION_FIELDS: list[tuple[Any, ...]] = [("slots", "<i8"), ("capacity", "<i8")]
"""What the record of a reduction begins with: where the rows of the run lie, and how many of the latest there are."""

_SIZE = ROW.itemsize


@inlined_kernel
def row_of(s: Any, number: int) -> Any:
    """Return row `number` of the run whose reduction has the record `s`."""
    return record_at(s.slots + (number % s.capacity) * _SIZE, ROW)


@dataclass(frozen=True)
class Reduction:
    """What is kept of a run.

    Attributes
    ----------
    part : callable
        The kernel.
    start : (1,) structured array
        What its record begins with; the fields `REDUCTION_FIELDS` are filled in for each run.
    """

    part: Callable[..., None]
    start: NDArray[Any]

    @property
    def address(self) -> int:
        """Where the part lies in this process, compiled now if it never was."""
        return address_of_part(self.part, self.start.dtype)

    def record(self, slots: Rows) -> NDArray[Any]:
        """Return the record, (1,), of a run whose rows go through `slots`."""
        record = self.start.copy()
        record["slots"], record["capacity"] = slots.ctypes.data, len(slots)
        return record
