"""Certificate, forces and flags of rows that are in memory as a whole."""

from __future__ import annotations

from typing import Any

from haptics.device import Causality
from haptics.recording.certificate import RunSummary
from haptics.records import Rows


def certificate(rows: Rows, executed: int, planned: int | None, period: float) -> dict[str, Any]:
    return RunSummary(period).add(rows).certificate(executed, planned)


def felt(rows: Rows, causality: Causality) -> dict[str, Any]:
    return RunSummary(1.0).add(rows).felt(causality)


def flags_seen(rows: Rows) -> dict[str, int]:
    return RunSummary(1.0).add(rows).flags_seen()
