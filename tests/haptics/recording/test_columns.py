"""Columns of recordings: what a table lacks is neutral where somebody asks for it, and what it has stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib import format as npy

from haptics.device import MOST_CHANNELS, Channel
from haptics.recording.columns import (
    FORMATS,
    WIDEST,
    column,
    columns_with,
    completed,
    missing_columns,
    safe_column,
    units_with,
)
from haptics.records import COLUMNS, NEUTRAL, ROW, ROW_UNITS

ENTRIES: dict[str, Any] = {entry[0]: entry for entry in npy.dtype_to_descr(COLUMNS)}


def rows_without(*absent: str) -> np.ndarray:
    """Return three hand-typed rows that lack some columns."""
    rows = np.zeros(3, np.dtype([entry for name, entry in ENTRIES.items() if name not in absent]))
    typed = {
        "tick": [7, 8, 9],
        "position": [[0.01, 0.02], [0.03, 0.04], [0.05, 0.06]],
        "marker": [4, 4, 5],
        "gate": [1.0, 0.5, 0.0],
        "region": [-1, 0, 2],
        "normal_force": [np.nan, 1.5, 2.5],
        "hand_force": [[1.0, 2.0], [3.0, 4.0], [np.nan, np.nan]],
    }
    for name, values in typed.items():
        if name not in absent:
            rows[name] = values
    return rows


def test_the_neutral_row_says_that_nothing_is_known() -> None:
    row = NEUTRAL[0]
    assert (row["marker"], row["gate"], row["region"]) == (0, 1.0, -1)
    assert np.isnan(row["normal_force"])
    assert np.isnan(row["hand_force"]).all()
    assert all(not np.any(row[name]) for name in ENTRIES if name not in FORMATS)


@given(st.sets(st.sampled_from(sorted(FORMATS))))
def test_what_is_missing_is_neutral_and_the_rest_is_untouched(absent: set[str]) -> None:
    rows, full = rows_without(*absent), rows_without()
    whole = completed(rows)
    assert whole.dtype == ROW
    for name in ENTRIES:
        expected = np.broadcast_to(NEUTRAL[name], full[name].shape) if name in absent else full[name]
        np.testing.assert_array_equal(column(rows, name), expected)
        np.testing.assert_array_equal(whole[name], expected)
    assert np.isnan(whole["channels"]).all()
    whole["tick"] = 0
    assert rows["tick"].tolist() == [7, 8, 9]


def test_an_empty_table_can_be_completed() -> None:
    assert len(completed(rows_without("gate")[:0])) == 0


def test_columns_of_others_have_no_part_in_it() -> None:
    rows = rows_without()
    more = np.zeros(3, np.dtype([*npy.dtype_to_descr(rows.dtype), ("pressure", "<f4", (3,))]))
    for name in ENTRIES:
        more[name] = rows[name]
    assert completed(more).dtype == ROW
    np.testing.assert_array_equal(completed(more)["gate"], rows["gate"])


@pytest.mark.parametrize(("version", "lacking"), [(1, []), (2, []), (3, sorted(FORMATS))])
def test_what_a_format_must_have(version: int, lacking: list[str]) -> None:
    names = [name for name in ENTRIES if name not in FORMATS]
    assert sorted(missing_columns(names, version)) == lacking
    assert missing_columns(names[1:], version)[0] == "tick"


@pytest.mark.parametrize(
    "entry", [*ENTRIES.values(), ("pressure", "<f8"), ("wrench", "<f4", (6,)), ("c_1", "|u1"), ("x", "<i8", (WIDEST,))]
)
def test_ours_and_plain_numbers_are_safe(entry: Any) -> None:
    assert safe_column(entry) == entry


@pytest.mark.parametrize(
    "entry",
    [
        ("gate", "<f4"),
        ("gate", "<f8", (1,)),
        ("hand_force", "<f8"),
        ("hand_force", "<f8", [2]),
        ("pressure", "|O"),
        ("pressure", ">f8"),
        ("pressure", "<f16"),
        ("pressure", "<U9"),
        ("pressure", "|V8"),
        ("pressure", "<f8", (0,)),
        ("pressure", "<f8", (WIDEST + 1,)),
        ("pressure", "<f8", (2, 2)),
        ("pressure", "<f8", 2),
        ("pressure", "<f8", [2]),
        ("pressure", "<f8", (True,)),
        ("pressure", "<f8", (2.0,)),
        ("pressure", "<f8", (2,), 3),
        ("pressure", [("a", "<f8")]),
        (("title", "pressure"), "<f8"),
        ("", "<f8"),
        ("Pressure", "<f8"),
        ("pressure [N]", "<f8"),
        ("p" * 65, "<f8"),
        ("_hidden", "<f8"),
        ("pressure",),
        ["pressure", "<f8"],
        "pressure",
        None,
    ],
    ids=str,
)
def test_what_is_not_plain_is_refused(entry: Any) -> None:
    assert safe_column(entry) is None


# --- channels ---------------------------------------------------------------------------------------------------------


@st.composite
def channels(draw: st.DrawFn) -> tuple[Channel, ...]:
    sizes = draw(st.lists(st.integers(1, 7), max_size=8).filter(lambda sizes: sum(sizes) <= MOST_CHANNELS))
    return tuple((f"c_{number}", "V", size) for number, size in enumerate(sizes))


@given(channels())
def test_a_recorded_row_is_the_beginning_of_a_row_of_the_trace(declared: tuple[Channel, ...]) -> None:
    columns, row = columns_with(declared), np.zeros(1, ROW)
    row["tick"], row["hand_force"], row["channels"] = 7, (1.5, 2.5), np.arange(MOST_CHANNELS)
    recorded = np.frombuffer(row.tobytes(), columns, 1)[0]
    assert (recorded["tick"], recorded["hand_force"].tolist()) == (7, [1.5, 2.5])
    numbers = [np.atleast_1d(recorded[f"channel_{name}"]).tolist() for name, _, _ in declared]
    assert [len(values) for values in numbers] == [size for _, _, size in declared]
    assert [number for values in numbers for number in values] == list(range(sum(size for _, _, size in declared)))


@given(channels())
def test_every_column_of_a_channel_is_safe_and_has_its_unit(declared: tuple[Channel, ...]) -> None:
    entries, units = npy.dtype_to_descr(columns_with(declared)), units_with(declared)
    assert all(safe_column(entry) == entry for entry in entries)
    assert list(units) == [entry[0] for entry in entries]
    assert list(units.values()) == [*ROW_UNITS.values(), *(unit for _, unit, _ in declared)]


def test_a_channel_is_never_taken_for_a_column_of_ours() -> None:
    names = columns_with([("force", "N", 2), ("tick", "1", 1)]).names or ()
    assert names[-2:] == ("channel_force", "channel_tick")
    assert len(set(names)) == len(names)
