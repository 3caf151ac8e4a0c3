"""From the recording of a joint to a session that renders it, and the comparison of both loops."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from apps.cli import main
from haptics.reading import read_toml
from haptics.recording.recording import Recording
from tests.apps.calibrate.commands import calibrate, refusal
from tests.calibration.measured import write_csv

Array = NDArray[np.float64]

LEVER = ("--lever-arm", "0.1")
DURATION = 12.0


def joint(forward: float = 0.3, backward: float = 0.3, part: float = 0.0, distance: float = 0.02) -> dict[str, Array]:
    """Columns of a joint with dry friction [N m], of which `part` builds up over a distance [rad], and an offset."""
    time = np.arange(0.0, DURATION, 0.005)
    position = 0.8 + 0.5 * np.sin(1.7 * time) * (0.75 + 0.25 * np.cos(0.9 * time))
    velocity = np.gradient(position, time)
    deflection, state = np.zeros(6), np.empty(len(time))
    for k, step in enumerate(np.diff(position, prepend=position[0])):
        limits = distance * np.linspace(0.2, 1.8, 6)
        deflection = np.clip(deflection + step, -limits, limits)
        state[k] = deflection.mean() / distance
    level = np.where(velocity > 0.0, forward, backward)
    friction = (level - part) * np.sign(velocity) + part * state + 0.05
    noise = 0.003 * np.random.default_rng(2).standard_normal(len(time))
    return {"time_s": time, "position_rad": position, "velocity_rad_per_s": velocity, "torque_nm": noise - friction}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("law")
    write_csv(place / "plain.csv", **joint())
    write_csv(place / "soft.csv", **joint(part=0.2))
    write_csv(place / "sided.csv", **joint(forward=0.4, backward=0.2))
    columns = joint()
    both = {f"{name}.{key}": values for name in ("hip", "knee") for key, values in columns.items() if key != "time_s"}
    write_csv(place / "two.csv", time_s=columns["time_s"], **both)
    return place


def rendered(capsys: pytest.CaptureFixture[str], folder: Path, name: str, model: str, device: str) -> dict[str, Any]:
    """Identify a joint, render it on a virtual device along the recorded motion, verify, and compare the loops."""
    law, hand, data = folder / f"{name}.toml", folder / f"{name}-hand.csv", folder / f"{name}.csv"
    answer = calibrate(
        capsys,
        *("friction", "--data", data, "--out", folder / "P.toml", "--model", model),
        *("--law", law, "--law-hand", hand, *LEVER),
    )
    assert (answer["law"], answer["law_hand"]) == (str(law), str(hand))
    run = ["run", "--config", str(law), "--device", device, "--hand", str(hand), "--duration", str(DURATION)]
    run += ["--clock", "off", "--headless", "--record", str(folder / device), "--set", "session.picture=false"]
    capsys.readouterr()
    assert main([*run, "--json"]) == 0
    recording = Path(json.loads(capsys.readouterr().out)["recording"])
    for check in (["verify", str(recording)], ["replay", str(recording), "--verify", "--headless"]):
        assert main([*check, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["verdict"] == "ok"
    picture = folder / f"{name}-{device}.png"
    found = calibrate(capsys, "loops", "--data", data, "--recording", recording, "--law", law, "--out", picture)
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert found["picture"] == str(picture)
    return {**found, "recording": recording, "law": read_toml(law)}


@pytest.mark.parametrize(
    ("name", "model", "device", "element", "bound"),
    [
        ("plain", "coulomb-viscous-offset", "virtual-joystick", "C", 12.0),
        ("soft", "coulomb-viscous-offset-presliding", "virtual-joystick", "iwan", 8.0),
        ("soft", "coulomb-viscous-offset-presliding", "virtual-arm", "D", 15.0),
        ("sided", "coulomb-viscous-asymmetric", "virtual-arm", "A", 15.0),
    ],
)
def test_the_rendered_loop_is_that_of_the_joint(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, model: str, device: str, element: str, bound: float
) -> None:
    found = rendered(capsys, folder, name, model, device)
    assert Recording(found["recording"]).metadata["model"] == element
    assert found["difference_percent_of_level"] < bound
    assert found["loop_area_rendered"] == pytest.approx(found["loop_area_measured"], rel=0.05)


def test_asymmetric_levels_are_felt(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = rendered(capsys, folder, "sided", "coulomb-viscous-asymmetric", "virtual-joystick")
    rows = Recording(found["recording"]).rows
    force, velocity = rows["friction_force"][:, 0], rows["sliding_velocity"][:, 0]
    offset = 0.05 / 0.1  # not told from different levels by this model
    assert np.median(force[velocity > 1e-3]) == pytest.approx(4.0 + offset, rel=0.02)
    assert np.median(force[velocity < -1e-3]) == pytest.approx(-2.0 + offset, rel=0.02)


def test_the_scale_is_that_of_the_forces_and_is_undone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    law = folder / "scaled.toml"
    answer = calibrate(
        capsys,
        *("friction", "--data", folder / "plain.csv", "--out", folder / "P.toml", "--model", "coulomb-viscous-offset"),
        *("--law", law, *LEVER, "--scale", "0.05"),
    )
    assert read_toml(law)["law"]["force"] == pytest.approx(0.15, rel=0.01)
    assert "consider --scale" in answer["law_warnings"][0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "{0}/plain.csv", "--law", "{0}/x.toml"], r"the joint turns, .* give --lever-arm M"),
        (["--data", "{0}/plain.csv", "--law", "{0}/x.toml", "--lever-arm", "-1"], "--lever-arm = -1.0: must be"),
        (["--data", "{0}/plain.csv", "--law", "{0}/none/x.toml", *LEVER], "--law = .*none/x.toml.*: cannot be written"),
        (["--data", "{0}/plain.csv", "--law", "{0}/plain.csv", *LEVER], "--law = .*: is already used"),
        (["--data", "{0}/plain.csv", "--law-hand", "{0}/x.csv"], "--law-hand belongs to --law"),
        (["--data", "{0}/plain.csv", *LEVER], "--lever-arm belongs to --law"),
        (["--data", "{0}/two.csv", "--law", "{0}/x.toml", *LEVER], "hip, knee: choose one with --joint"),
    ],
)
def test_a_session_that_cannot_be_written_is_refused_at_once(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    out = tmp_path / "P.toml"
    line = refusal(capsys, "friction", "--out", out, *(argument.format(folder) for argument in arguments))
    assert re.search(message, line), line
    assert not out.exists()
    assert not (folder / "x.toml").exists()


def test_one_of_several_joints_is_rendered(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    law = folder / "knee.toml"
    calibrate(
        capsys,
        *("friction", "--data", folder / "two.csv", "--joint", "knee", "--out", folder / "P.toml"),
        *("--model", "coulomb-viscous-offset", "--law", law, *LEVER),
    )
    assert read_toml(law)["provenance"]["joint"] == "knee"


def test_loops_need_a_session_file_of_a_joint(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.toml"
    other.write_text("[law]\nforce = 3.0\n")
    arguments = ("loops", "--data", folder / "plain.csv", "--recording", tmp_path, "--law", other)
    assert "has no table [provenance]" in refusal(capsys, *arguments, "--out", tmp_path / "x.png")
    assert "must end in .png or .svg" in refusal(capsys, *arguments, "--out", tmp_path / "x.gif")
