"""Models of friction terms, and the calibration report."""

import argparse
import base64
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from apps.calibrate import command
from apps.calibrate.report import friction_pages, write_report
from apps.calibrate.results import provenance
from calibration.friction import FitSettings
from calibration.identification import IdentificationOptions, PredictionError, identify
from calibration.parameters import ParameterFile
from calibration.terms.model import read_term_file
from haptics.errors import ConfigurationError
from tests.calibration.joints import idle, joint, write_csv


def write(path, seed):
    seen = joint(seed=seed, inertia=-8.0)
    return str(write_csv(path, time_s=seen.time, velocity_rad_per_s=seen.velocity, torque_nm=-seen.friction))


def run(*arguments, kind="terms"):
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    return command.run(parser.parse_args([kind, *arguments]))


def test_model_is_fitted_and_checked_now_and_later(tmp_path):
    data, other, model = write(tmp_path / "a.csv", 1), write(tmp_path / "b.csv", 2), tmp_path / "m.toml"
    answer = run("--data", data, "--check", other, "--out", str(model))
    (found,) = answer.result["joints"]
    assert found["checks"][other]["value"] < 0.1
    assert found["cross_validated"]["low"] < found["cross_validated"]["value"] < 0.1
    assert "b.csv: the error is" in answer.text
    assert read_term_file(model)["joint"].of("inertia").values[0] == pytest.approx(-8.0, rel=0.1)
    assert f'data_files = ["{Path(data).name}"]' in model.read_text()
    later = run("--parameters", str(model), "--data", other, kind="check")
    assert later.result["relative_errors"] == {"b.csv": {"joint": pytest.approx(found["checks"][other]["value"])}}
    assert "b.csv, joint: residual" in later.text
    with pytest.raises(ConfigurationError, match="--smooth, --inertia: models made of terms need neither"):
        run("--parameters", str(model), "--data", other, "--inertia", "1", kind="check")
    knee = tmp_path / "c.csv"
    knee.write_text(Path(other).read_text().replace("torque_nm", "knee.torque_nm"))
    with pytest.raises(ConfigurationError, match="has the joints knee; the models are of joint"):
        run("--parameters", str(model), "--data", str(knee), kind="check")
    with pytest.raises(ConfigurationError, match="has the joints knee, none of those of --data"):
        run("--data", data, "--check", str(knee), "--out", str(tmp_path / "n.toml"))


def test_kinds_are_compared_with_plain_fits(tmp_path):
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


def test_parts_are_left_out_in_turn(tmp_path):
    answer = run("--data", write(tmp_path / "a.csv", 1), "--in-turn", "2", "--out", str(tmp_path / "m.toml"))
    check = answer.result["joints"][0]["checks"]["each of 2 parts, left out in turn"]
    assert check["kinds"]["all terms"]["value"] < 0.2 < check["kinds"]["friction terms alone"]["value"]


@pytest.mark.parametrize(("option", "value"), [("--hold-out", "1.5"), ("--in-turn", "1")])
def test_invalid_partition_is_refused(tmp_path, option, value):
    with pytest.raises(ConfigurationError, match=option):
        run("--data", write(tmp_path / "a.csv", 1), option, value, "--out", str(tmp_path / "m.toml"))


@pytest.mark.parametrize(
    ("data", "out", "words"),
    [
        ("none.csv", "none/m.toml", "--out"),
        ("none.csv", "m.toml", r"none\.csv"),
        ("still.csv", "m.toml", r"still\.csv: the torque or force is 0 in every sample"),
    ],
)
def test_unusable_file_is_refused(tmp_path, data, out, words):
    time = np.arange(0.0, 10.0, 0.01)
    columns = {"velocity_rad_per_s": np.sin(time), "torque_nm": np.zeros(len(time))}
    write_csv(tmp_path / "still.csv", time_s=time, **columns)
    with pytest.raises(ConfigurationError, match=words):
        run("--data", str(tmp_path / data), "--out", str(tmp_path / out))
    assert not (tmp_path / out).exists()


def test_motion_in_one_direction_is_reported_unless_another_recording_has_both(tmp_path):
    time = np.arange(0.0, 10.0, 0.01)
    wave = 0.1 * np.sin(3.0 * time)
    path = write_csv(tmp_path / "a.csv", time_s=time, velocity_rad_per_s=0.2 + wave, torque_nm=-1.0 - wave)
    answer = run("--data", str(path), "--out", str(tmp_path / "m.toml"))
    assert "Record both" in answer.text and answer.result["joints"][0]["warnings"]
    both = run("--data", str(path), "--data", write(tmp_path / "b.csv", 1), "--out", str(tmp_path / "m.toml"))
    (joint,) = both.result["joints"]
    assert "warning" not in both.text and not joint["warnings"]
    assert '"a.csv", "b.csv"' in (tmp_path / "m.toml").read_text()


def test_only_requested_kinds_are_used(tmp_path):
    run("--data", write(tmp_path / "a.csv", 1), "--kind", "friction", "--out", str(tmp_path / "m.toml"))
    model = read_term_file(tmp_path / "m.toml")["joint"]
    assert {one.term.kind for one in model.fitted} == {"friction"}


@pytest.fixture(scope="module")
def knee():
    return identify([idle(0.1, duration=30.0)], IdentificationOptions("stribeck", settings=FitSettings()))


@pytest.fixture(scope="module")
def page(knee):
    (only,) = friction_pages(
        [knee], [knee.parameters()], {"knee": {"other day.csv": PredictionError(0.123, 0.1, -0.02)}}
    )
    return only


def written(path, file, pages):
    write_report(path, file, pages)
    return path.read_text(encoding="utf-8")


def file_of(knee, device="right knee"):
    return ParameterFile(provenance("least squares", [idle().source], device), (knee.parameters(),))


def figures(text):
    """Return the pictures in a report, parsed."""
    images = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', text)
    return [ET.fromstring(base64.b64decode(image)) for image in images]


def test_report_has_a_page_per_joint_with_its_numbers_and_needs_no_other_file(knee, page, tmp_path):
    text = written(tmp_path / "R.html", file_of(knee), [page, page])
    assert text.count("<section>") == text.count("<h1>knee: friction, stribeck</h1>") == 2
    found = page.found
    for name, value in found.values.items():
        low, high = found.intervals[name]
        assert f"{value:.4g} " in text and f"{low:.4g} to {high:.4g}" in text
    assert f"{found.facts['condition_number']:.4g}" in text
    assert "error on other day.csv" in text and "12.3%" in text
    assert "right knee" in text and "0" * 64 in text
    assert len(figures(text)) == 2

    # The report is self-contained.
    assert re.findall(r'(?:src|href)="(?!data:)', text) == []
    assert "@import" not in text and "url(" not in text
    assert not page.found.warnings and '<ul class="warnings">' not in text
    assert len(page.figure) < 1_500_000


def test_report_escapes_user_text(knee, page, tmp_path):
    found = replace(page.found, warnings=("1 < 2 & <b>",))
    odd = replace(
        page,
        joint=replace(page.joint, name="<script>", friction=found),
        checks={"a<b.csv": PredictionError(0.1, 0.1, 0.0)},
    )
    text = written(tmp_path / "R.html", file_of(knee, 'the "knee" <i>'), [odd])
    assert "<script>" not in text and "<b>" not in text and "<i>" not in text
    assert "1 &lt; 2 &amp; &lt;b&gt;" in text
    assert '<ul class="warnings">' in text
