"""Which axes of a device have a motor, by its report descriptor.

Device Class Definition for Physical Interface Devices 1.0: the report Set Effect lists under Axes Enable the axes on
which an effect may act, and under Direction one ordinal for each. Axes that are measured only, such as pedals, are in
the input report alone.
"""

from __future__ import annotations

from devices.joystick.hid import usages as use
from devices.joystick.hid.layout import Report, ReportDescriptor, ReportType


def actuated_axes(descriptor: ReportDescriptor) -> tuple[int, ...]:
    """Return the usages of the axes that have a motor; none where the device does not say so.

    Where there is no Axes Enable, as many of the usual axes as a direction has ordinals. Otherwise the ordinals do not
    count: one angle is enough for a direction in the plane.
    """
    report = descriptor.of(ReportType.OUTPUT, use.SET_EFFECT)
    if report is None:
        return ()
    return _listed(report, use.AXES_ENABLE) or (use.X, use.Y)[: len(_listed(report, use.DIRECTION))]


def _listed(report: Report, collection: int) -> tuple[int, ...]:
    """Return the different usages in a collection of a report, padding left out."""
    fields = (field for field in report.fields if field.inside(collection) and not field.constant)
    return tuple(dict.fromkeys(usage for field in fields for usage in field.usages))
