"""Verification of Iwan elements, of arms that do not follow, and of calibration motions."""

from __future__ import annotations

import hashlib
import json
import math
import shutil

import numpy as np
import pytest

import devices
from apps.verify.check import verify
from apps.verify.findings import VIOLATED
from apps.verify.recorded import Flag
from calibration.motions import Mover
from calibration.motions.arm import JointExcitation
from calibration.motions.excitation import Excitation, HandleExcitation
from haptics.recording import replay
from haptics.recording.recording import Recording
from tests.apps.verify.forging import assert_honest, copy_of
from tests.apps.verify.runs import LAWS, Plan, make, tables_of

MORE = {
    **LAWS,
    "slender": {"name": "elliptic", "force_x": 3.0, "force_y": 0.3, "angle": 0.4, "viscosity": 3.0},
    "approximate": {**LAWS["elliptic"], "name": "elliptic-closed-form"},
}
HAND = {"name": "minimum-jerk", "points": [[-0.03, 0.01], [0.03, -0.02]], "speed": 0.4, "rest": 0.0, "pause": 0.02}
STIFF = {"stiff_share": 0.4, "stiff_stiffness": 5000.0}


def iwan(law="coulomb", stiff=None, **more):
    element = {"stiffness": 3000.0, "damping": 6.0, "count": 5, "spread": 0.7, **(stiff or {})}
    return Plan(tables_of("iwan", hand=HAND, law=dict(MORE[law]), element=element), **more)


@pytest.mark.parametrize("law", ["viscous", "stribeck", "slender"])
def test_stiff_share_raises_no_alarm_and_replays(law, tmp_path):
    folder = make(tmp_path / "run", iwan(law, STIFF))
    assert_honest(folder)
    assert replay.verify(Recording(folder)).mismatches == 0


def test_transitions_between_laws_raise_no_alarm(tmp_path):
    laws = {100: "slender", 250: "stribeck", 400: "asymmetric"}
    changes = {tick: {"law": dict(MORE[law])} for tick, law in laws.items()}
    assert_honest(make(tmp_path / "run", iwan(changes=changes, shut=((180, 260),))), share=math.inf)


def test_changes_gates_and_faults_raise_no_alarm(tmp_path):
    changes = {150: {"element": {"count": 9}}, 300: {"law": {"force": 1.2}, "element": {"spread": 0.3}}}
    disturbed = iwan(changes=changes, shut=((60, 90),), skips=(200,), faults=("nan@0.35+0.01",))
    assert_honest(make(tmp_path / "run", disturbed), share=math.inf)


@pytest.fixture(scope="module", params=["coulomb", "elliptic", "asymmetric"])
def honest(request, tmp_path_factory):
    return make(tmp_path_factory.mktemp("iwan") / "run", iwan(request.param))


def scale_law(forgery):
    table = forgery.settings[0]["law"]
    name = next(name for name in ("force", "force_y", "backward_force") if name in table)
    table[name] *= 1.001


def turn_axes(forgery):
    """Turn the axes of the law; replace an isotropic law by an elliptic one."""
    table = forgery.settings[0]["law"]
    table["angle"] = table.get("angle", 0.0) + 1e-6
    table["name"] = "elliptic" if table["name"] == "coulomb" else table["name"]
    table |= {"force_x": table["force"], "force_y": 1.001 * table["force"]} if "force" in table else {}


def scale_force(forgery):
    k = forgery.pick(forgery.steady & (forgery.norm("friction_force") > 0.5))
    for name in ("friction_force", "command", "command_unlimited"):
        forgery.rows[name][k] *= 1.001


CHANGES = {
    "spread": lambda forgery: forgery.settings[0]["element"].update(spread=0.65),
    "count": lambda forgery: forgery.settings[0]["element"].update(count=6),
    "law": scale_law,
    "axes": turn_axes,
    "force": scale_force,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_falsified_iwan_recording_is_detected(honest, tmp_path, change):
    forgery = copy_of(honest, tmp_path / "forged")
    change(forgery)
    forgery.metadata["configuration"] |= {name: forgery.settings[0][name] for name in ("law", "element")}
    forgery.save()
    found = verify(tmp_path / "forged")[1]
    assert found.verdict == VIOLATED
    assert {one.rule for one in found.violations} <= {"law", "equations", "sticking", "energy"}


def test_missing_parameter_of_the_element_is_incomplete(honest, tmp_path):
    forgery = copy_of(honest, tmp_path / "forged")
    del forgery.settings[0]["element"]["stiffness"]
    forgery.metadata["configuration"]["element"] = forgery.settings[0]["element"]
    forgery.save()
    assert "settings" in {one.rule for one in verify(tmp_path / "forged")[1].missing}


PUSHES = [[0.0, 0.0, 0.0], [0.05, 6.0, 3.0], [0.2, 6.0, 3.0], [0.25, -8.0, 0.0], [0.45, -8.0, 0.0], [0.5, 0.0, 0.0]]


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """Record a pushed virtual arm of which some samples are refused because it lags behind its reference."""
    folder = tmp_path_factory.mktemp("following")
    hand = {"name": "scripted-force", "script": PUSHES}
    tables = tables_of("A", hand=hand, law={"name": "coulomb", "force": 1.0})
    rows = np.load(make(folder / "free", Plan(tables)) / "ticks.npy")
    off = np.hypot(*(rows["position"][1:] - rows["command"][:-1]).T)
    limits = {"max_following_error": 0.6 * float(off.max())}
    return make(folder / "refused", Plan({**tables, "envelope": limits}))


def sample_violations(folder):
    found = verify(folder)[1]
    assert found.verdict == VIOLATED
    return [one.words for one in found.violations if one.rule == "sample"]


def test_lagging_arm_raises_no_alarm(refused):
    assert json.loads((refused / "recording.json").read_text())["flags"].get("FOLLOWING_ERROR", 0) > 0
    assert_honest(refused, share=math.inf)


@pytest.mark.parametrize(
    ("hidden", "words"),
    [
        (True, "by the rules it is refused because the arm does not follow"),
        (False, "was refused because the arm does not follow, by the rules"),
    ],
    ids=["hidden", "invented"],
)
def test_falsified_following_error_is_detected(refused, tmp_path, hidden, words):
    forgery = copy_of(refused, tmp_path / "forged")
    if hidden:
        k = int(np.flatnonzero(forgery.rows["status"] & Flag.FOLLOWING_ERROR)[0])
    else:
        k = forgery.pick(forgery.steady)
    forgery.rows["status"][k] ^= np.uint32(Flag.FOLLOWING_ERROR)
    forgery.save()
    assert any(words in one for one in sample_violations(tmp_path / "forged"))


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_falsified_following_limit_is_detected(refused, tmp_path, factor):
    forgery = copy_of(refused, tmp_path / "forged")
    forgery.metadata["limits"]["max_following_error"] *= factor
    forgery.metadata["configuration"]["envelope"]["max_following_error"] *= factor
    forgery.save()
    assert sample_violations(tmp_path / "forged")


IDLE_HAND = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
SHORT = Excitation(slowest=0.05, fastest=0.2, speeds=2, rounds=2, strokes=1, stroke_time=0.2)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Record a calibration motion of both kinds of device."""
    folder = tmp_path_factory.mktemp("motions")

    def create(_, clock):
        return devices.create_device("virtual-joystick", {"hand": IDLE_HAND}, clock=clock)

    HandleExcitation(SHORT).run(Mover(create, live=False), folder / "handle")
    JointExcitation(SHORT).run(Mover.of("virtual-arm", {"hand": IDLE_HAND}), folder / "arm")
    return {"handle": folder / "handle", "arm": folder / "arm"}


@pytest.mark.parametrize("name", ["handle", "arm"])
def test_calibration_motions_raise_no_alarm(recordings, name):
    found = assert_honest(recordings[name], share=math.inf)
    assert found.residuals["place of the reference"].ticks > 1000


@pytest.mark.parametrize("name", ["handle", "arm"])
@pytest.mark.parametrize("change", ["table", "table and hash", "output", "place"])
def test_falsified_motion_is_detected(recordings, tmp_path, name, change):
    folder = tmp_path / "forged"
    shutil.copytree(recordings[name], folder)
    rows = np.load(folder / "ticks.npy")
    if change == "output":
        rows["command_unlimited"][700] *= 1.01
    elif change == "place":
        rows["displacement"][700] += 1e-6
    else:
        table = np.load(folder / "motion_0002.npy")
        table[100, 0] += 1e-3
        np.save(folder / "motion_0002.npy", table)
    if change == "table and hash":
        lines = [json.loads(line) for line in (folder / "settings.jsonl").read_text().splitlines()]
        lines[2]["table_sha256"] = hashlib.sha256((folder / "motion_0002.npy").read_bytes()).hexdigest()
        (folder / "settings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    np.save(folder / "ticks.npy", rows)
    assert "motion" in {one.rule for one in verify(folder)[1].violations}
