"""Iwan's elements, which rows show as means only, are followed one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from apps.verify.check import verify
from apps.verify.findings import INCOMPLETE, OK, VIOLATED
from tests.apps.verify.forging import Forgery
from tests.apps.verify.runs import LAWS, Plan, make
from tests.apps.verify.test_following import forged

HAND = {"name": "minimum-jerk", "points": [[-0.03, 0.01], [0.03, -0.02]], "speed": 0.4, "rest": 0.0, "pause": 0.02}


def plan(law: str = "coulomb", **more: object) -> Plan:
    element = {"stiffness": 3000.0, "damping": 6.0, "count": 5, "spread": 0.7}
    return Plan(
        {
            "session": {"model": "iwan"},
            "device": {"name": "virtual-joystick"},
            "hand": HAND,
            "law": LAWS[law],
            "element": element,
        },
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("law", ["coulomb", "viscous", "stribeck", "gaussian", "rubber"])
def test_honest_recordings_raise_no_alarm(law: str, tmp_path: Path) -> None:
    found = verify(make(tmp_path / "run", plan(law)))[1]
    assert (found.violations, found.missing, found.verdict) == ([], [], OK)
    assert {"friction force", "displacement", "sliding velocity"} <= set(found.residuals)
    assert max(one.share for one in found.residuals.values()) < 0.5


def test_it_goes_on_through_changes_gates_and_faults(tmp_path: Path) -> None:
    changes = {150: {"element": {"count": 9}}, 300: {"law": {"force": 1.2}, "element": {"spread": 0.3}}}
    disturbed = plan(changes=changes, shut=((60, 90),), skips=(200,), faults=("nan@0.35+0.01",))
    found = verify(make(tmp_path / "run", disturbed))[1]
    assert (found.violations, found.missing, found.verdict) == ([], [], OK)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("iwan") / "run", plan())


def spread(forgery: Forgery) -> None:
    forgery.settings[0]["element"]["spread"] = 0.65


def count(forgery: Forgery) -> None:
    forgery.settings[0]["element"]["count"] = 6


def law(forgery: Forgery) -> None:
    forgery.settings[0]["law"]["force"] *= 1.001


def force(forgery: Forgery) -> None:
    k = forgery.pick(forgery.steady & (forgery.norm("friction_force") > 0.5))
    for name, sign in (("friction_force", 1.0), ("command", -1.0), ("command_unlimited", -1.0)):
        forgery.rows[name][k] = sign * 1.001 * np.abs(forgery.rows[name][k]) * np.sign(sign * forgery.rows[name][k])


@pytest.mark.parametrize("wrong", [spread, count, law, force])
def test_what_was_changed_is_found(honest: Path, tmp_path: Path, wrong: object) -> None:
    forgery = forged(honest, tmp_path / "forged")
    wrong(forgery)  # type: ignore[operator]
    forgery.save()
    assert verify(tmp_path / "forged")[1].verdict == VIOLATED


def test_a_law_that_differs_between_directions_is_not_checked(tmp_path: Path) -> None:
    assert verify(make(tmp_path / "run", plan("elliptic")))[1].verdict == INCOMPLETE
