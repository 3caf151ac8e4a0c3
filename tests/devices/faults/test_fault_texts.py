"""Faults as texts: what ``--fault`` understands, what it answers to the rest, and the page that explains it."""

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.faults import FAULTS, Fault, describe, parse_fault
from haptics.errors import ConfigurationError

TIMES = st.floats(0.0, 1e7)
DURATIONS = st.none() | st.floats(0.0, 1e7, exclude_min=True)


@given(st.builds(Fault, st.sampled_from(sorted(FAULTS)), TIMES, DURATIONS))
def test_what_a_fault_says_is_read_as_the_same_fault(fault: Fault) -> None:
    assert parse_fault(str(fault)) == fault


PIECES = [*FAULTS, "@", "+", "-", ".", "e", " ", "\n", *"0123456789"]


@given(st.text(max_size=30) | st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
def test_any_text_is_a_fault_or_a_mistake_in_one_line(text: str) -> None:
    try:
        fault = parse_fault(text)
    except ConfigurationError as error:
        assert "\n" not in str(error)
    else:
        assert fault.name in FAULTS
        assert fault.start >= 0.0
        assert fault.length > 0.0


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("nan@2", Fault("nan", 2.0)),
        (" delay-20ms@.5 ", Fault("delay-20ms", 0.5)),
        ("dropout@1e1+5e-2", Fault("dropout", 10.0, 0.05)),
        ("nan@2.+1", Fault("nan", 2.0, 1.0)),
        ("nan@1e+1", Fault("nan", 10.0)),
    ],
)
def test_texts_that_are_allowed(text: str, fault: Fault) -> None:
    assert parse_fault(text) == fault


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nam@2", "unknown fault in 'nam@2': 'nam'. Did you mean 'nan'? Allowed: delay-1ms"),
        ("unplugged@2", "Did you mean 'unplug'?"),
        ("nan", "fault 'nan': must have the form NAME@SECONDS"),
        ("nan@", "fault 'nan@': must have the form"),
        ("nan@soon", "must have the form"),
        ("nan@-1", "must have the form"),
        ("nan@2+", "must have the form"),
        ("nan@2@3", "must have the form"),
        ("nan@inf", "must have the form"),
        ("nan@1e9", "fault nan@1000000000: must begin at 0 s at the earliest and at 1e+07 s at the latest"),
        ("nan@2+0", "fault nan@2+0: must last longer than 0 s"),
    ],
)
def test_texts_that_are_not(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        parse_fault(text)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0])
def test_a_fault_needs_a_time(wrong: float) -> None:
    with pytest.raises(ConfigurationError, match="must begin"):
        Fault("nan", wrong)
    with pytest.raises(ConfigurationError, match="must last"):
        Fault("nan", 1.0, wrong)


def test_faults_in_words() -> None:
    faults = [parse_fault(text) for text in ("nan@2", "dropout@3", "hang@0.5+0.1")]
    assert describe(faults) == "nan from 2 s on, dropout from 3 s for 0.05 s, hang from 0.5 s for 0.1 s"


def test_the_page_about_faults_has_all_of_them_as_they_are() -> None:
    page = (Path(__file__).parents[3] / "docs" / "faults.md").read_text()
    for name, kind in FAULTS.items():
        assert f"| `{name}` | {kind.description} |" in page
