"""Filter of the experimenter's messages in blind mode: removes condition, level, track and outcome.

Needs no Qt. The force is removed, too, and the position of the proxy, because its distance from the hand reveals the
force.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apps.experiment.screens.messages import Certificate, Outcome, Progress
from apps.front_ends.messages import SessionStarted
from apps.view.feed import LiveFeed
from haptics.records import Rows


def hidden(message: Any) -> Any:
    """Return a message without the values hidden in blind mode."""
    match message:
        case Progress():
            return replace(message, kind="", condition="", track=None, level=None)
        case Outcome():
            return replace(message, kind="", condition="", track=None, level=None, correct=None)
        case Certificate(figures):
            return Certificate(tuple(figure for figure in figures if not figure.telling))
        case SessionStarted():
            return replace(message, parameters=(), force_scale=1.0, law_settings={}, scene=None)
    return message


class BlindFeed(LiveFeed):
    """Feed of the trace of a run, without its forces."""

    def add_rows(self, rows: Rows, unseen: int = 0) -> None:
        """Add rows, of which only the motion is kept."""
        rows = rows.copy()
        for name in ("command", "force", "friction_force"):
            rows[name] = 0.0
        rows["proxy"] = rows["position"]
        rows["sticking"] = 0
        super().add_rows(rows, unseen)
