"""Iwan's elements, which rows show as means only, are followed one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from apps.verify.check import verify
from apps.verify.findings import OK, VIOLATED
from haptics.recording import replay
from haptics.recording.recording import Recording
from tests.apps.verify.forging import Forgery
from tests.apps.verify.runs import LAWS, Plan, make
from tests.apps.verify.test_following import forged

MORE = {
    **LAWS,
    "slender": {"name": "elliptic", "force_x": 3.0, "force_y": 0.3, "angle": 0.4, "viscosity": 3.0},
    "approximate": {**LAWS["elliptic"], "name": "elliptic-closed-form"},
}
HAND = {"name": "minimum-jerk", "points": [[-0.03, 0.01], [0.03, -0.02]], "speed": 0.4, "rest": 0.0, "pause": 0.02}


def plan(law: str = "coulomb", **more: object) -> Plan:
    element = {"stiffness": 3000.0, "damping": 6.0, "count": 5, "spread": 0.7}
    return Plan(
        {
            "session": {"model": "iwan"},
            "device": {"name": "virtual-joystick"},
            "hand": HAND,
            "law": dict(MORE[law]),
            "element": element,
        },
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("law", ["coulomb", "viscous", "stribeck", "gaussian", "dead-zone", "rubber", "closed-form"])
def test_honest_recordings_raise_no_alarm(law: str, tmp_path: Path) -> None:
    found = verify(make(tmp_path / "run", plan(law)))[1]
    assert (found.violations, found.missing, found.verdict) == ([], [], OK)
    assert {"friction force", "displacement", "sliding velocity"} <= set(found.residuals)
    assert max(one.share for one in found.residuals.values()) < 0.5


@pytest.mark.parametrize("law", ["elliptic", "asymmetric", "slender", "approximate"])
def test_laws_that_differ_between_directions_raise_no_alarm(law: str, tmp_path: Path) -> None:
    found = verify(make(tmp_path / "run", plan(law)))[1]
    assert (found.violations, found.missing, found.verdict) == ([], [], OK)
    assert max(one.share for one in found.residuals.values()) < 0.5


@pytest.mark.parametrize("law", ["viscous", "stribeck", "slender"])
def test_a_stiff_share_raises_no_alarm_and_replays(law: str, tmp_path: Path) -> None:
    stiff = plan(law)
    stiff.tables["element"] |= {"stiff_share": 0.4, "stiff_stiffness": 5000.0}
    folder = make(tmp_path / "run", stiff)
    found = verify(folder)[1]
    assert (found.violations, found.missing, found.verdict) == ([], [], OK)
    assert max(one.share for one in found.residuals.values()) < 0.5
    assert replay.verify(Recording(folder)).mismatches == 0


def test_one_law_goes_over_into_another(tmp_path: Path) -> None:
    changes = {
        tick: {"law": dict(MORE[law])} for tick, law in ((100, "slender"), (250, "stribeck"), (400, "asymmetric"))
    }
    found = verify(make(tmp_path / "run", plan(changes=changes, shut=((180, 260),))))[1]
    assert (found.violations, found.missing, found.verdict) == ([], [], OK)


def test_it_goes_on_through_changes_gates_and_faults(tmp_path: Path) -> None:
    changes = {150: {"element": {"count": 9}}, 300: {"law": {"force": 1.2}, "element": {"spread": 0.3}}}
    disturbed = plan(changes=changes, shut=((60, 90),), skips=(200,), faults=("nan@0.35+0.01",))
    found = verify(make(tmp_path / "run", disturbed))[1]
    assert (found.violations, found.missing, found.verdict) == ([], [], OK)


@pytest.fixture(scope="module", params=["coulomb", "elliptic", "asymmetric"])
def honest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("iwan") / "run", plan(request.param))


def spread(forgery: Forgery) -> None:
    forgery.settings[0]["element"]["spread"] = 0.65


def count(forgery: Forgery) -> None:
    forgery.settings[0]["element"]["count"] = 6


def law(forgery: Forgery) -> None:
    table = forgery.settings[0]["law"]
    name = next(name for name in ("force", "force_y", "backward_force") if name in table)
    table[name] *= 1.001


def turned(forgery: Forgery) -> None:
    """The law's axes are others; one without any is another altogether."""
    table = forgery.settings[0]["law"]
    table["angle"] = table.get("angle", 0.0) + 1e-6
    table["name"] = "elliptic" if table["name"] == "coulomb" else table["name"]
    table |= {"force_x": table["force"], "force_y": 1.001 * table["force"]} if "force" in table else {}


def force(forgery: Forgery) -> None:
    k = forgery.pick(forgery.steady & (forgery.norm("friction_force") > 0.5))
    for name, sign in (("friction_force", 1.0), ("command", -1.0), ("command_unlimited", -1.0)):
        forgery.rows[name][k] = sign * 1.001 * np.abs(forgery.rows[name][k]) * np.sign(sign * forgery.rows[name][k])


@pytest.mark.parametrize("wrong", [spread, count, law, turned, force])
def test_what_was_changed_is_found(honest: Path, tmp_path: Path, wrong: object) -> None:
    forgery = forged(honest, tmp_path / "forged")
    wrong(forgery)  # type: ignore[operator]
    forgery.metadata["configuration"] |= {name: forgery.settings[0][name] for name in ("law", "element")}
    forgery.save()
    found = verify(tmp_path / "forged")[1]
    assert found.verdict == VIOLATED
    assert {one.rule for one in found.violations} <= {"law", "equations", "sticking", "energy"}
