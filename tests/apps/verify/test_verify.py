"""`haptics verify`: no false alarm on honest recordings of all kinds, and every one of 200 wrongs found by its rule."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from apps import cli
from apps.verify.check import verify
from apps.verify.facts import FLAGS
from apps.verify.findings import INCOMPLETE, OK, VIOLATED, Findings
from tests.apps.verify import wrongs_of_contacts, wrongs_of_envelopes, wrongs_of_records  # noqa: F401
from tests.apps.verify.forging import WRONGS, Expected, Forgery, NotHere, wrongs
from tests.apps.verify.runs import CLASSICS, LAWS, classic_plan, make, plan_of
from tests.recordings import KEPT

A_FEW = (1, 9, 13, 14, 20, 24, 28, 34, 35, 38, 43, 44, 47, 50, 64, 69, 83, 84, 93, 95, 106, 124, 162)
"""Plans of the default run: every model and kind of law, changes of both, hands, gates, skips and faults among them."""


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("honest")
    return [make(folder / str(number), plan_of(number)) for number in A_FEW]


def sound(folder: Path) -> Findings:
    run, found = verify(folder)
    assert (found.violations, found.missing, found.verdict) == ([], [], OK)
    assert run.count == len(run.source.rows)
    return found


def test_honest_recordings_raise_no_alarm(honest: list[Path]) -> None:
    found = [sound(folder) for folder in honest]
    names = {name for one in found for name in one.residuals}
    assert names >= {"law at rest", "law while sliding", "balance of the mass", "spring and damper", "displacement"}
    assert names >= {"command", "ledger of energy"}
    # what honest recordings leave is well within what rounding may leave: the bounds are no fits
    assert max(one.share for each in found for one in each.residuals.values()) < 0.5


def test_the_few_recordings_are_of_all_kinds(honest: list[Path]) -> None:
    plans = [plan_of(number) for number in A_FEW]
    assert {plan.tables["session"]["model"] for plan in plans} == set("ABCD")
    assert {str(plan.tables["law"]) for plan in plans} >= {str(law) for name, law in LAWS.items() if name != "weak"}
    for name in ("changes", "shut", "skips", "faults"):
        assert any(getattr(plan, name) for plan in plans)
    told = [json.loads((folder / "recording.json").read_text()) for folder in honest]
    flags = {name for one in told for name in one["flags"]}
    assert flags >= set(FLAGS) - {"ASTRAY", "FOLLOWING_ERROR", "ENDED_LATE"}  # of motions, of a blocked arm
    assert any(one["error"] for one in told)


@pytest.mark.parametrize("number", range(len(CLASSICS)), ids=lambda number: "-".join(CLASSICS[number]))
def test_classic_models_raise_no_alarm(number: int, tmp_path: Path) -> None:
    found = sound(make(tmp_path / "run", classic_plan(number)))
    assert "friction force" in found.residuals
    assert max(one.share for one in found.residuals.values()) < 0.5


def forged(recordings: list[Path], number: int, name: str, first: int, folder: Path) -> tuple[Expected, Findings]:
    """Do a wrong to a copy of the first recording in which it is possible; return what must be found, and what is."""
    for tries in range(len(recordings)):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(recordings[(first + tries) % len(recordings)], folder)
        forgery = Forgery(folder, np.random.default_rng((7, number)))
        try:
            expected = WRONGS[name](forgery)
        except NotHere:
            continue
        forgery.save()
        return expected, verify(folder)[1]
    raise AssertionError(f"{name}: possible in none of the recordings")


def is_found(expected: Expected, found: Findings) -> bool:
    ticks = {expected.tick, None if expected.tick is None else expected.tick + 1}
    there = found.missing if expected.missing else found.violations
    named = any(one.rule == expected.rule and (expected.tick is None or one.tick in ticks) for one in there)
    return named and found.verdict == (VIOLATED if found.violations else INCOMPLETE)


def test_every_one_of_200_wrongs_is_found_by_its_rule(honest: list[Path], tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    missed = {}
    for number, name, first in wrongs(200, len(honest)):
        expected, found = forged(honest, number, name, first, tmp_path / "forged")
        if is_found(expected, found):
            counts[expected.rule] += 1
        else:
            missed[number, name] = (expected, [*found.violations, *found.missing][:5])
    assert missed == {}
    assert counts.total() == 200
    assert len(counts) >= 20


@pytest.mark.parametrize("kept", [path for path in KEPT if path.name != "c_killed"], ids=lambda path: path.name)
def test_recordings_of_older_formats_are_verified(kept: Path) -> None:
    sound(kept)


def test_a_killed_recording_is_incomplete(tmp_path: Path) -> None:
    killed = next(path for path in KEPT if path.name == "c_killed")
    _, found = verify(killed)
    assert (found.verdict, found.violations) == (INCOMPLETE, [])
    assert {one.rule for one in found.missing} == {"state", "hash", "certificate"}


def test_the_command_says_the_verdict(honest: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["verify", str(honest[A_FEW.index(28)])]) == 0
    said = capsys.readouterr().out
    assert "law while sliding" in said
    assert said.endswith("verdict: ok\n")
    shutil.copytree(honest[0], tmp_path / "forged")
    forgery = Forgery(tmp_path / "forged", np.random.default_rng(1))
    forgery.rows["time"][7] += 1e-6
    forgery.save()
    assert cli.main(["verify", str(tmp_path / "forged"), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["ticks"], answer["verdict"], answer["missing"]) == (len(forgery.rows), VIOLATED, [])
    words = "the time is not the number of the tick times the period"
    assert answer["violations"] == [{"rule": "time", "tick": int(forgery.rows["tick"][7]), "words": words}]
    assert cli.main(["verify", str(tmp_path)]) == 2


def test_the_blocks_of_an_experiments_session_are_verified_together(
    honest: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    said = capsys.readouterr().out
    assert "block-02: the proxy is not" in said
    assert f"block-02: {len(forgery.rows)} ticks, violated, in the trials 7, 9" in said
    assert cli.main(["verify", str(tmp_path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["recordings"]
    assert [(one["violated_ticks"], one["violated_markers"]) for one in told] == [(0, []), (3, [7, 9]), (0, [])]


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
def test_a_description_that_is_not_as_it_should_be_is_no_crash(
    honest: list[Path], tmp_path: Path, path: str, value: object
) -> None:
    shutil.copytree(honest[0], tmp_path / "odd")
    file = tmp_path / "odd" / "recording.json"
    metadata = json.loads(file.read_text())
    *parents, last = path.split(".")
    table = metadata
    for parent in parents:
        table = table[parent]
    table[last] = value
    file.write_text(json.dumps(metadata))
    assert cli.main(["verify", str(tmp_path / "odd")]) in {1, 2}
