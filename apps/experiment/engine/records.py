"""Journal records of a trial."""

from __future__ import annotations

from typing import Any

from apps.experiment.design import Design
from apps.experiment.engine.sequence import TrialSpec
from haptics.errors import RecordingError


def start_of(plan: TrialSpec, design: Design, attempt: int) -> dict[str, Any]:
    """Return the fields of a ``trial_start`` record, except its attempt."""
    return {
        "trial": plan.trial,
        "block": plan.block,
        "kind": plan.kind,
        "condition": plan.condition.name,
        "track": plan.label,
        "reference": plan.condition.reference,
        "level": plan.level,
        "comparison_interval": plan.comparison,
        "values": list(plan.values),
        "axis": design.axis,
        "markers": list(plan.markers(attempt)),
    }


def require_same(plan: TrialSpec, start: dict[str, Any]) -> None:
    """Raise if a trial differs from its journal record."""
    told = plan.condition.name, plan.level, list(plan.values), plan.kind
    if told != (start["condition"], start["level"], start["values"], start["kind"]):
        raise RecordingError(
            f"trial {plan.trial} of the journal was {start['kind']} at {start['level']} in {start['condition']!r}, and "
            f"would now be {plan.kind} at {plan.level} in {plan.condition.name!r}: the file of the experiment or the "
            "program is not what it was."
        )
