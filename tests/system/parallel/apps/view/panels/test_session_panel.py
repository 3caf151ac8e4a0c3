"""What the next run will be: choices with a line on each, and a sign of what waits."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from apps.front_ends.messages import SessionStarted, Start
from apps.settings.about import about, choices, hands_to_choose, laws_to_choose
from apps.settings.config import complete
from haptics.device import Causality
from tests.apps.view.driving import frames

LINES = {"law": {"coulomb": "Dry friction.", "stribeck": "Friction that falls with speed."}}


@pytest.fixture
def session(live):
    """The panel of a run with a law that can be changed for another one."""
    live.begin(law="coulomb", laws=("coulomb", "stribeck"), about=LINES)
    frames(live)
    return live.window.controls.session


def test_another_law_waits_for_start_and_is_sent_with_it(live, session) -> None:
    controls = live.window.controls
    assert not session.pending.isVisible()
    session.law.setCurrentText("stribeck")
    assert session.pending.isVisible()
    assert "law coulomb goes on" in session.pending.text()
    assert session._names["law"].text().endswith("●")
    assert controls.start.text() == "Start again with these"
    assert live.sent() == [], "nothing is sent before Start"
    controls.start.click()
    assert live.sent() == [Start("virtual-joystick", "C", "mouse", "stribeck")]


def test_what_is_chosen_back_does_not_wait(session) -> None:
    session.law.setCurrentText("stribeck")
    session.law.setCurrentText("coulomb")
    assert not session.pending.isVisible()
    assert session._names["law"].text() == "Law"


def test_several_choices_that_wait_are_all_named(session) -> None:
    session.law.setCurrentText("stribeck")
    session.model.setCurrentText("B")
    assert "model C, law coulomb go on" in session.pending.text()


def test_every_choice_has_its_line_below_and_as_a_tool_tip(session) -> None:
    assert session._lines["law"].text() == "Dry friction."
    session.law.setCurrentText("stribeck")
    assert session._lines["law"].text() == session.law.toolTip() == "Friction that falls with speed."
    assert not session._lines["hand"].isVisible(), "nothing is said of it"


@pytest.mark.parametrize("causality", list(Causality))
def test_a_session_has_a_line_on_all_that_it_offers(causality: Causality) -> None:
    device = "virtual-joystick" if causality is Causality.IMPEDANCE else "virtual-arm"
    config = complete({"device": {"name": device}})
    lines = about(causality)
    offered = {
        "device": tuple(choices(config)),
        "model": tuple({model for models in choices(config).values() for model in models}),
        "law": laws_to_choose("coulomb"),
        "hand": hands_to_choose("minimum-jerk"),
    }
    for kind, names in offered.items():
        for name in names:
            assert 15 < len(lines[kind][name]) < 125, (kind, name)
            assert ":math:" not in lines[kind][name]
            assert "(Kikuuwe" not in lines[kind][name]


def test_a_session_of_before_offers_no_law(live) -> None:
    live.begin()
    assert SessionStarted.__dataclass_fields__["laws"].default == ()
    assert not live.window.controls.session.law.isVisible()
