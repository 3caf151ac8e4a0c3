"""Reductions of runs in simulated time, accumulated in compiled code without storing the rows.

A reduction is a part (`haptics.parts`) ``(record, first, following)``. It adds the rows from index `first` to
`following` (exclusive) to its record, which begins with `REDUCTION_FIELDS`, and accesses each row with `row_of`.
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
"""First fields of the record of a reduction: address and number of the latest rows of the run."""

_SIZE = ROW.itemsize


@inlined_kernel
def row_of(s: Any, number: int) -> Any:
    """Return row `number` of the run whose reduction has the record `s`."""
    return record_at(s.slots + (number % s.capacity) * _SIZE, ROW)


@dataclass(frozen=True)
class Reduction:
    """Reduction of the rows of a run.

    Attributes
    ----------
    part : callable
        The kernel.
    start : (1,) structured array
        Initial record; the fields `REDUCTION_FIELDS` are set for each run.
    """

    part: Callable[..., None]
    start: NDArray[Any]

    @property
    def address(self) -> int:
        """Address of the part in this process; the part is compiled on first use."""
        return address_of_part(self.part, self.start.dtype)

    def record(self, slots: Rows) -> NDArray[Any]:
        """Return the initial record, (1,), of a run whose rows are written to `slots`."""
        record = self.start.copy()
        record["slots"], record["capacity"] = slots.ctypes.data, len(slots)
        return record
