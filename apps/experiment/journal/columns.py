"""Columns of the table of trials, with name, unit and description, for all export formats."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

AXIS_UNIT = "unit of the axis"
"""Unit of columns that depend on the axis of the experiment. The column ``axis_unit`` contains it."""


@dataclass(frozen=True)
class Column:
    """A column of the table of trials.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : str
        ``text``, ``number``, ``whole`` or ``flag`` (true or false).
    doc : str
        Description.
    unit : str
        SI unit, or `AXIS_UNIT`.
    levels : dict
        Meaning of each value, if the values are limited.
    """

    name: str
    kind: str
    doc: str
    unit: str = ""
    levels: dict[str, str] = field(default_factory=dict)

    def as_bids(self) -> dict[str, Any]:
        """Return the description of the column for a BIDS sidecar."""
        told: dict[str, Any] = {"LongName": self.name.replace("_", " "), "Description": self.doc}
        if self.levels:
            told["Levels"] = dict(self.levels)
        if self.unit:
            told["Units"] = self.unit
        return told


_KINDS = {
    "test": "a trial that counts for the result",
    "practice": "an easy trial with feedback before the test",
    "catch-null": "two equal stimuli, or none",
    "catch-easy": "a difference that nobody misses",
}
_OUTCOMES = {
    "ok": "the trial counts",
    "repeat": "it was disturbed, or against the rules of exploration, and was run again",
    "aborted": "it was broken off",
}
_RESPONSES = {
    "1": "the first interval",
    "2": "the second interval",
    "yes": "there was something",
    "no": "there was nothing",
    "same": "they were the same",
    "different": "they were not the same",
}

TRIAL_COLUMNS: tuple[Column, ...] = (
    Column("participant", "text", "code of the participant"),
    Column("session", "whole", "session of the participant, from 1"),
    Column("experiment", "text", "name of the experiment"),
    Column("observer", "text", "the simulated observer that answered; empty where a person did"),
    Column("block", "whole", "block of the session, from 1"),
    Column("trial", "whole", "trial of the session, from 1; a trial that was repeated has several rows"),
    Column("attempt", "whole", "which attempt at the trial, from 1"),
    Column("kind", "text", "kind of trial", levels=_KINDS),
    Column("counts", "flag", "whether this attempt is the one that counts"),
    Column("condition", "text", "condition"),
    Column("track", "text", "track of the procedure"),
    Column("axis", "text", "the setting that varied"),
    Column("axis_unit", "text", "its unit"),
    Column("reference", "number", "value of the reference", AXIS_UNIT),
    Column("level", "number", "level that the procedure chose: above the reference in a discrimination", AXIS_UNIT),
    Column("comparison_interval", "whole", "the interval that had the comparison, 1 or 2"),
    Column("response", "text", "what was answered: a word, or a number", levels=_RESPONSES),
    Column("correct", "flag", "whether that was right; empty where nothing is right or wrong"),
    Column("reaction_time_s", "number", "from the end of the last interval to the answer, by the tick clock", "s"),
    Column("response_tick", "whole", "tick of the answer in the recording"),
    Column("source", "text", "what it was given with"),
    Column("key", "text", "key or button"),
    Column("outcome", "text", "whether the trial counts", levels=_OUTCOMES),
    Column("reasons", "text", "why it does not, separated by semicolons"),
    Column("started_utc", "text", "when the trial began (ISO 8601)"),
    Column("ended_utc", "text", "when it ended (ISO 8601)"),
    Column("recording", "text", "folder of the recording, relative to the session's"),
    Column("marker_1", "whole", "marker of the rows of the first interval in it"),
    Column("marker_2", "whole", "marker of the rows of the second interval in it"),
    Column("asked_1", "number", "asked: the axis in the first interval as the procedure chose it", AXIS_UNIT),
    Column("asked_2", "number", "asked: the axis in the second interval as the procedure chose it", AXIS_UNIT),
)
"""Columns from the journal."""


_SOURCES = {
    "model": "delivered, and the model of the device's own friction",
    "sensor": "the device's force sensor",
    "truth": "the virtual hand or plant itself",
}


def _of_interval(number: int) -> tuple[Column, ...]:
    which = ("first", "second")[number - 1]
    return (
        Column(f"delivered_{number}", "number", f"delivered: what the {which} interval's commands rendered", AXIS_UNIT),
        Column(f"delivered_flagged_{number}", "number", "share of its ticks that were limited", "1"),
        Column(f"felt_{number}", "number", f"felt: the {which} interval at the hand", AXIS_UNIT),
        Column(f"felt_low_{number}", "number", f"lower end of the 95 % interval of felt_{number}", AXIS_UNIT),
        Column(f"felt_high_{number}", "number", f"upper end of the 95 % interval of felt_{number}", AXIS_UNIT),
        Column(f"ticks_{number}", "whole", f"ticks of the {which} interval"),
        Column(f"speed_{number}", "number", f"mean sliding speed in the {which} interval", "m/s"),
    )


STIMULUS_COLUMNS: tuple[Column, ...] = (
    *_of_interval(1),
    *_of_interval(2),
    Column("delivered_exact", "flag", "whether every tick that was not flagged had exactly the force of the law"),
    Column("felt_source", "text", "where felt comes from", levels=_SOURCES),
    Column("late_share", "number", "share of the trial's ticks that came late", "1"),
    Column("longest_gap_s", "number", "longest time between two ticks of the trial", "s"),
    Column("stimulus_missing", "text", "why delivered and felt are empty"),
)
"""Columns from the recordings. Specified, delivered and felt stimuli are kept separate."""

COLUMNS = (*TRIAL_COLUMNS, *STIMULUS_COLUMNS)
"""All columns, in order."""


def cells_of(row: dict[str, Any], columns: tuple[Column, ...]) -> list[Any]:
    """Return the values of a row in the order of `columns`, None where missing."""
    return [row.get(column.name) for column in columns]


def text_of(value: Any, missing: str = "") -> str:
    """Return a value as file text: numbers with all digits, ``true`` or ``false``, and `missing` for None."""
    if value is None:
        return missing
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)
