"""Detection of the axes with a motor from a report descriptor.

Device Class Definition for Physical Interface Devices 1.0: the report Set Effect lists under Axes Enable the axes on
which an effect may act, and under Direction one ordinal for each. Axes that are only measured, such as pedals, appear
in the input report alone.
"""

from __future__ import annotations

from devices.joystick.hid import usages as use
from devices.joystick.hid.layout import Report, ReportDescriptor, ReportType


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
