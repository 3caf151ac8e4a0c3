"""The verification: no alarm on honest recordings, falsifications found by their rule, independence, memory."""

import functools
import json
import math
import operator
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from apps import cli
from apps.verify import description, recorded
from apps.verify.certificate import _Values
from apps.verify.check import verify
from apps.verify.findings import INCOMPLETE, OK, VIOLATED
from apps.verify.laws import NotUnderstood, inclusion, law_of, levels
from apps.verify.recorded import Order
from devices.virtual.joystick import VirtualJoystick
from haptics.elements.tables import make_law
from haptics.recording.recording import METADATA
from haptics.records import ROW, Permission, Status
from haptics.servo.kernels import GATE_TIME
from tests.apps.verify.forging import WRONGS, Forgery, NotApplicable, assert_honest, copy_of, wrongs
from tests.apps.verify.runs import CLASSICS, LAWS, classic_plan, make, plan_of
from tests.processes import ROOT
from tests.recordings import KEPT

A_FEW = (1, 9, 13, 14, 20, 24, 28, 34, 35, 38, 43, 44, 47, 50, 64, 69, 83, 84, 93, 95, 106, 124, 162)
"""Plans of the default run: every model and kind of law, changes of both, hands, gates, skips and faults among them."""


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("honest")
    return [make(folder / str(number), plan_of(number)) for number in A_FEW]


def test_honest_recordings_raise_no_alarm(honest):
    found = [assert_honest(folder) for folder in honest]
    names = {name for one in found for name in one.residuals}
    assert names >= {"law at rest", "law while sliding", "balance of the mass", "spring and damper", "displacement"}
    assert names >= {"command", "ledger of energy"}


def test_warm_motors_raise_no_alarm_and_forged_ones_do(tmp_path, monkeypatch):
    """The data sheet of the virtual joystick states a thermal limit, which acts during the run."""
    sheet = VirtualJoystick.spec.fget
    warm = property(lambda self: replace(sheet(self), continuous_force=0.5, full_force_time=0.03))
    monkeypatch.setattr(VirtualJoystick, "spec", warm)
    recordings = [make(tmp_path / str(number), plan_of(number)) for number in (4, 20, 38)]
    warm_ticks = [int((np.load(folder / "ticks.npy")["status"] & Status.THERMAL != 0).sum()) for folder in recordings]
    assert sum(warm_ticks) > 100
    for folder in recordings:
        assert_honest(folder)
    forgery = copy_of(recordings[int(np.argmax(warm_ticks))], tmp_path / "forged")
    k = int(np.flatnonzero(forgery.rows["status"] & Status.THERMAL)[0])
    forgery.rows["status"][k] ^= np.uint32(Status.THERMAL)
    forgery.save()
    assert verify(tmp_path / "forged")[1].verdict == VIOLATED


@pytest.mark.parametrize("number", range(len(CLASSICS)), ids=lambda number: "-".join(CLASSICS[number]))
def test_classic_models_raise_no_alarm(number, tmp_path):
    assert "friction force" in assert_honest(make(tmp_path / "run", classic_plan(number))).residuals


def falsify(recordings, number, name, first, folder):
    """Falsify a copy of the first recording in which this is possible; return the expected and the actual findings."""
    for tries in range(len(recordings)):
        shutil.rmtree(folder, ignore_errors=True)
        forgery = copy_of(recordings[(first + tries) % len(recordings)], folder, 7, number)
        try:
            expected = WRONGS[name](forgery)
        except NotApplicable:
            continue
        forgery.save()
        return expected, verify(folder)[1]
    raise AssertionError(f"{name}: possible in none of the recordings")


def is_found(expected, found):
    ticks = {expected.tick, None if expected.tick is None else expected.tick + 1}
    there = found.missing if expected.missing else found.violations
    named = any(one.rule == expected.rule and (expected.tick is None or one.tick in ticks) for one in there)
    return named and found.verdict == (VIOLATED if found.violations else INCOMPLETE)


def test_200_falsifications_are_found_by_their_rule(honest, tmp_path):
    rules, missed = [], {}
    for number, name, first in wrongs(200, len(honest)):
        expected, found = falsify(honest, number, name, first, tmp_path / "forged")
        if is_found(expected, found):
            rules.append(expected.rule)
        else:
            missed[number, name] = (expected, [*found.violations, *found.missing][:5])
    assert missed == {}
    assert len(rules) == 200 and len(set(rules)) >= 20


@pytest.mark.parametrize("kept", [path for path in KEPT if path.name != "c_killed"], ids=lambda path: path.name)
def test_recordings_of_older_formats_are_verified(kept):
    assert_honest(kept, share=math.inf)


def test_killed_recording_is_incomplete(tmp_path):
    killed = next(path for path in KEPT if path.name == "c_killed")
    _, found = verify(killed)
    assert (found.verdict, found.violations) == (INCOMPLETE, [])
    assert {one.rule for one in found.missing} == {"state", "hash", "certificate"}


def test_command_reports_the_verdict(honest, tmp_path, capsys):
    assert cli.main(["verify", str(honest[A_FEW.index(28)])]) == 0
    output = capsys.readouterr().out
    assert "law while sliding" in output
    assert output.endswith("verdict: ok\n")
    forgery = copy_of(honest[0], tmp_path / "forged")
    forgery.rows["time"][7] += 1e-6
    forgery.save()
    assert cli.main(["verify", str(tmp_path / "forged"), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["ticks"], answer["verdict"], answer["missing"]) == (len(forgery.rows), VIOLATED, [])
    words = "the time is not the number of the tick times the period"
    assert answer["violations"] == [{"rule": "time", "tick": int(forgery.rows["tick"][7]), "words": words}]
    assert cli.main(["verify", str(tmp_path)]) == 2


def test_blocks_of_a_session_are_verified_together(honest, tmp_path, capsys):
    for number, folder in enumerate(honest[:3], 1):
        shutil.copytree(folder, tmp_path / "blocks" / f"block-{number:02}")
    assert cli.main(["verify", str(tmp_path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [Path(one["recording"]).name for one in answer["recordings"]] == ["block-01", "block-02", "block-03"]
    assert answer["ticks"] == sum(one["ticks"] for one in answer["recordings"])
    forgery = Forgery(tmp_path / "blocks" / "block-02", np.random.default_rng(1))
    forgery.rows["proxy"][[100, 300, 301]] += 1e-6
    forgery.rows["marker"][50:200], forgery.rows["marker"][300:] = 7, 9
    forgery.save()
    assert cli.main(["verify", str(tmp_path)]) == 1
    output = capsys.readouterr().out
    assert "block-02: the proxy is not" in output
    assert f"block-02: {len(forgery.rows)} ticks, violated, in the trials 7, 9" in output
    assert cli.main(["verify", str(tmp_path), "--json"]) == 1
    recordings = json.loads(capsys.readouterr().out)["recordings"]
    assert [(one["violated_ticks"], one["violated_markers"]) for one in recordings] == [(0, []), (3, [7, 9]), (0, [])]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("limits", {}),
        ("limits.max_force", "wide"),
        ("device.workspace_min", 3),
        ("certificate", []),
        ("configuration.session", 5),
        ("configuration.fitness", {"late_share": "x"}),
        ("real_time", 7),
    ],
)
def test_malformed_metadata_does_not_crash(honest, tmp_path, path, value):
    shutil.copytree(honest[0], tmp_path / "odd")
    file = tmp_path / "odd" / "recording.json"
    metadata = json.loads(file.read_text())
    *parents, last = path.split(".")
    functools.reduce(operator.getitem, parents, metadata)[last] = value
    file.write_text(json.dumps(metadata))
    assert cli.main(["verify", str(tmp_path / "odd")]) in {1, 2}


def test_finding_counts_the_ticks_of_all_windows(honest, tmp_path, monkeypatch):
    forgery = copy_of(honest[0], tmp_path / "forged")
    forgery.rows["time"][::50] += 1e-6
    forgery.rows["marker"][100:] = 7
    forgery.save()
    monkeypatch.setattr(recorded, "WINDOW", 60)
    _, found = verify(tmp_path / "forged")
    count = len(forgery.rows[::50])
    (time,) = (one for one in found.violations if one.rule == "time")
    assert time.tick == forgery.rows["tick"][0] and f"({count} ticks)" in time.words
    assert (found.violated_ticks, found.violated_markers) == (count, {7})


@pytest.mark.parametrize("size", [1, 5, 40])
@pytest.mark.parametrize(("flag", "gap", "tick"), [(0, 20, 23), (int(Status.AFTER_SKIP), 30, 5)])
def test_order_of_ticks_does_not_depend_on_the_chunks(size, flag, gap, tick):
    rows = np.zeros(40, ROW)
    rows["tick"] = np.arange(40)
    rows["tick"][20:] += 3
    rows["tick"][30], rows["status"][20] = 5, flag

    class Source:
        def chunks(self, columns):
            return (rows[start : start + size] for start in range(0, 40, size))

    found = Order(Source())
    assert (found.gap, found.gap_tick, found.back, found.last) == (gap, tick, (32, 5), 42)


rng = np.random.default_rng(5)
TICKS = 500
DISTRIBUTIONS = {
    "nanoseconds": rng.gamma(2.0, 1e4, TICKS).astype(int) * 1e-9,
    "continuous": rng.normal(2e-5, 1e-5, TICKS),
    "all equal": np.full(TICKS, 3e-6),
    "two": np.repeat([1e-6, 2e-6], TICKS // 2),
    "with gaps": np.where(rng.random(TICKS) < 0.1, np.nan, rng.random(TICKS)),
    "one": np.where(np.arange(TICKS) == 7, 4e-6, np.nan),
    "negative": -rng.random(TICKS),
}


@pytest.mark.parametrize("most", [10, 1 << 18], ids=["by passes over the rows", "in memory"])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_quantiles_of_any_distribution_agree_with_the_recorder(name, most, honest, tmp_path, monkeypatch):
    """If only few values may be kept, the quantiles are found by passes over the rows."""
    monkeypatch.setattr(_Values, "MOST", most)
    forgery = copy_of(honest[0], tmp_path / "forged")
    forgery.rows["tick_time"] = DISTRIBUTIONS[name]
    forgery.save()
    assert "certificate" not in {one.rule for one in verify(forgery.folder)[1].violations}
    for share in forgery.metadata["certificate"]["tick_us"]:
        described = json.loads(json.dumps(forgery.metadata))
        described["certificate"]["tick_us"][share] += 0.01
        (forgery.folder / METADATA).write_text(json.dumps(described))
        assert "certificate" in {one.rule for one in verify(forgery.folder)[1].violations}


def test_stated_resolution_is_accepted_only_for_many_values(honest, tmp_path, monkeypatch):
    forgery = copy_of(honest[0], tmp_path / "forged")
    forgery.metadata["certificate"]["period_error_us"]["p50"] += 1.0

    def verdict(resolution):
        forgery.metadata["certificate"]["resolution_us"] = resolution
        (forgery.folder / METADATA).write_text(json.dumps(forgery.metadata))
        return verify(forgery.folder)[1].verdict

    assert verdict({"period_error_us": 5.0}) == VIOLATED
    monkeypatch.setattr(_Values, "TOGETHER", 2)
    assert verdict({"period_error_us": 5.0}) == OK
    assert verdict({"period_error_us": 1e9}) == VIOLATED
    assert verdict(["period_error_us"]) == VIOLATED


MADE_BY = ("haptics.elements", "haptics.friction", "haptics.rendering", "haptics.servo", "numba")


def test_verification_imports_no_rendering_code():
    code = "import sys, apps.verify.check, apps.verify.command; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "apps.verify.check" in loaded
    assert [name for name in loaded if name.startswith(MADE_BY)] == []


def test_flags_and_times_agree_with_the_program():
    assert {flag.name: int(flag) for flag in Status} == recorded.FLAGS
    assert (recorded.Permission.RELEASED, recorded.Permission.ENDING) == (Permission.RELEASED, Permission.ENDING)
    assert description.GATE_TIME == GATE_TIME


EXACT = [name for name in LAWS if name != "closed-form"]


@pytest.mark.parametrize("name", EXACT)
def test_sliding_force_agrees_with_the_program(name):
    theirs, ours = make_law(LAWS[name]), law_of(LAWS[name])
    random = np.random.default_rng(3)
    velocity = random.normal(size=(400, 2)) * np.geomspace(1e-6, 1.0, 400)[:, None]
    force = np.stack([theirs(one) for one in velocity])
    residual, bound = inclusion(ours, force, velocity, 0.0)
    assert (residual <= bound).all()
    for factor in (1.0 + 1e-8, 1.0 - 1e-8):
        residual, bound = inclusion(ours, factor * force, velocity, 0.0)
        assert (residual > bound).all()


@pytest.mark.parametrize("name", EXACT)
def test_static_force_agrees_with_the_program(name):
    theirs, ours = make_law(LAWS[name]), law_of(LAWS[name])
    assert theirs.breakaway_force == pytest.approx(ours.static, rel=1e-12)
    angles = np.linspace(0.0, 2.0 * np.pi, 13)
    directions = np.stack((np.cos(angles), np.sin(angles)), axis=1)
    edge = edges(theirs, directions)
    rest = np.zeros_like(edge)
    for factor, allowed in ((1.0 - 1e-9, True), (1.0 + 1e-8, False), (0.5, True)):
        residual, bound = inclusion(ours, factor * edge, rest, 0.0)
        assert ((residual <= bound) == allowed).all()


def edges(law, directions):
    """Return the largest forces at rest, as the program's own solver finds where a contact begins to slide."""
    found = []
    for direction in directions:
        low, high = 0.0, 2.0 * law.breakaway_force
        for _ in range(60):
            middle = 0.5 * (low + high)
            if np.allclose(law.implicit(middle * direction * 1e-9, 1e-9), middle * direction, rtol=1e-11, atol=0.0):
                low = middle
            else:
                high = middle
        found.append(low * direction)
    return np.array(found)


@pytest.mark.parametrize(
    "source",
    [
        "def f(s): return __import__('os').getpid()",
        "def f(s): return s.real",
        "def f(s):\n    while s > 0:\n        s -= 1\n    return s",
        "def f(s, a='x'): return s",
        "def f(s): return lambda: s",
        "def f(s): return (1).bit_length()",
        "def f(s): return [s for _ in (1, 2)]",
        "def f(s): return math.gamma(s)",
        "def f(s): return unknown + s",
        "import os",
        "def f(s): return " + "1 + " * 3000 + "s",
        "def f(s): return " + "(" * 400 + "s" + ")" * 400,
    ],
)
def test_unsafe_law_source_is_not_evaluated(source):
    with pytest.raises(NotUnderstood):
        levels(source, {}, np.array([0.1]))
