"""The command: models of terms out of recordings, judged on others."""

import argparse
from pathlib import Path

import numpy as np
import pytest

from apps.calibrate import check, terms
from apps.shared.answer import Answer
from calibration.terms.files import read_term_file
from calibration.terms.terms import KINDS
from haptics.errors import ConfigurationError
from tests.calibration.simulated_joints import joint


def write(path: Path, seed: int) -> str:
    seen = joint(seed=seed, inertia=-8.0)
    table = np.column_stack((seen.time, seen.velocity, -seen.friction))
    np.savetxt(path, table, delimiter=",", header="time_s,velocity_rad_per_s,torque_nm", comments="", fmt="%.9g")
    return str(path)


def run(*arguments: str) -> Answer:
    parser = argparse.ArgumentParser()
    terms.add_options(parser)
    return terms.run(parser.parse_args(arguments))


def test_one_line_makes_a_model_and_judges_it(tmp_path: Path) -> None:
    data, other = write(tmp_path / "a.csv", 1), write(tmp_path / "b.csv", 2)
    answer = run("--data", data, "--check", other, "--out", str(tmp_path / "m.toml"))
    (found,) = answer.result["joints"]
    assert found["checks"][other]["value"] < 0.1
    assert found["cross_validated"]["low"] < found["cross_validated"]["value"] < 0.1
    assert "b.csv: the error is" in answer.text
    model = read_term_file(tmp_path / "m.toml")["joint"]
    assert model.of("inertia").values[0] == pytest.approx(-8.0, rel=0.1)
    assert f'data_files = ["{Path(data).name}"]' in (tmp_path / "m.toml").read_text()


def check_later(model: Path, *arguments: str) -> Answer:
    parser = argparse.ArgumentParser()
    check.add_options(parser)
    return check.run(parser.parse_args(["--parameters", str(model), *arguments]))


def test_a_model_is_judged_later_as_it_is_at_once(tmp_path: Path) -> None:
    data, other, model = write(tmp_path / "a.csv", 1), write(tmp_path / "b.csv", 2), tmp_path / "m.toml"
    (found,) = run("--data", data, "--check", other, "--out", str(model)).result["joints"]
    later = check_later(model, "--data", other)
    assert later.result["relative_errors"] == {"b.csv": {"joint": pytest.approx(found["checks"][other]["value"])}}
    assert "b.csv, joint: residual" in later.text
    with pytest.raises(ConfigurationError, match="--smooth, --inertia: models made of terms need neither"):
        check_later(model, "--data", other, "--inertia", "1")
    text = Path(other).read_text()
    (tmp_path / "c.csv").write_text(text.replace("torque_nm", "knee.torque_nm"))
    with pytest.raises(ConfigurationError, match="has the joints knee; the models are of joint"):
        check_later(model, "--data", str(tmp_path / "c.csv"))


def test_every_kind_is_judged_beside_plain_fits(tmp_path: Path) -> None:
    data, other = write(tmp_path / "a.csv", 1), write(tmp_path / "b.csv", 2)
    answer = run("--data", data, "--check", other, "--hold-out", "0.3", "--out", str(tmp_path / "m.toml"))
    checks = answer.result["joints"][0]["checks"]
    assert list(checks) == [other, f"{data}, the last 30%"]
    for judged in checks.values():
        kinds = judged["kinds"]
        assert list(kinds)[:2] == ["plain, alike both ways", "plain, asymmetric"]
        assert kinds["without drive terms"]["ratio_to_first"]["high"] < 0.8
        assert kinds["all terms"]["value"] == judged["value"]
    assert "by that of the first" in answer.text
    assert "needs measured velocity" not in answer.text


def test_parts_are_left_out_in_turn(tmp_path: Path) -> None:
    answer = run("--data", write(tmp_path / "a.csv", 1), "--in-turn", "2", "--out", str(tmp_path / "m.toml"))
    check = answer.result["joints"][0]["checks"]["each of 2 parts, left out in turn"]
    assert check["kinds"]["all terms"]["value"] < 0.2 < check["kinds"]["friction terms alone"]["value"]


@pytest.mark.parametrize(("option", "value"), [("--hold-out", "1.5"), ("--in-turn", "1")])
def test_parts_that_make_no_sense_are_said(tmp_path: Path, option: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=option):
        run("--data", write(tmp_path / "a.csv", 1), option, value, "--out", str(tmp_path / "m.toml"))


def test_motion_in_one_direction_only_is_doubted(tmp_path: Path) -> None:
    time = np.arange(0.0, 10.0, 0.01)
    table = np.column_stack((time, 0.2 + 0.1 * np.sin(3.0 * time), -1.0 - 0.1 * np.sin(3.0 * time)))
    path = tmp_path / "a.csv"
    np.savetxt(path, table, delimiter=",", header="time_s,velocity_rad_per_s,torque_nm", comments="")
    answer = run("--data", str(path), "--out", str(tmp_path / "m.toml"))
    assert "Record both" in answer.text and answer.result["joints"][0]["warnings"]
    both = run("--data", str(path), "--data", write(tmp_path / "b.csv", 1), "--out", str(tmp_path / "m.toml"))
    assert "warning" not in both.text and not both.result["joints"][0]["warnings"]


def test_only_the_kinds_asked_for_are_used(tmp_path: Path) -> None:
    run("--data", write(tmp_path / "a.csv", 1), "--kind", "friction", "--out", str(tmp_path / "m.toml"))
    model = read_term_file(tmp_path / "m.toml")["joint"]
    assert {term.kind for term in model.terms} == {"friction"}


def test_several_recordings_are_taken_together(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{seed}.csv", seed) for seed in (1, 2)]
    answer = run("--data", files[0], "--data", files[1], "--out", str(tmp_path / "m.toml"))
    assert len(answer.result["joints"]) == 1
    assert '"1.csv", "2.csv"' in (tmp_path / "m.toml").read_text()


def test_a_place_that_cannot_be_written_is_said_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--out"):
        run("--data", "nothing.csv", "--out", str(tmp_path / "none" / "m.toml"))


def test_a_file_without_torque_is_named(tmp_path: Path) -> None:
    time = np.arange(0.0, 10.0, 0.01)
    table = np.column_stack((time, np.sin(time), np.zeros(len(time))))
    path = tmp_path / "still.csv"
    np.savetxt(path, table, delimiter=",", header="time_s,velocity_rad_per_s,torque_nm", comments="")
    with pytest.raises(ConfigurationError, match=r"still\.csv: the torque or force is 0 in every sample"):
        run("--data", str(path), "--out", str(tmp_path / "m.toml"))


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nothing\.csv"):
        run("--data", str(tmp_path / "nothing.csv"), "--out", str(tmp_path / "m.toml"))
    assert not (tmp_path / "m.toml").exists()


def test_another_recording_of_other_joints_is_said(tmp_path: Path) -> None:
    data = write(tmp_path / "a.csv", 1)
    text = Path(data).read_text()
    (tmp_path / "b.csv").write_text(text.replace("torque_nm", "knee.torque_nm"))
    with pytest.raises(ConfigurationError, match="has the joints knee, none of those of --data"):
        run("--data", data, "--check", str(tmp_path / "b.csv"), "--out", str(tmp_path / "m.toml"))


def test_the_kinds_of_the_command_are_those_of_the_terms() -> None:
    assert terms.KINDS == KINDS
