"""Asked, delivered and felt: three different things, none of them computed from another."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.experiment.journal import read_journal, trial_rows
from apps.experiment.stimulus import measure
from apps.experiment.stimulus.delivered import delivered
from apps.experiment.stimulus.felt import felt
from apps.experiment.stimulus.ground import Ground
from devices.virtual.joystick import VirtualJoystick
from haptics import Coulomb
from haptics.device import Causality
from haptics.recording.recording import Recording
from haptics.records import NEUTRAL, Status
from tests.apps.experiment.design.designs import WEBER, changed
from tests.apps.experiment.engine.running import simulate

OWN = """\
[provenance]
device = "virtual-joystick"
[joint.x]
rotary = false
[joint.x.friction]
model = "coulomb-viscous"
coulomb_force_n = 0.4
viscosity_ns_per_m = 1.0
[joint.x.friction.interval_95]
coulomb_force_n = [0.38, 0.42]
[joint.y]
rotary = false
[joint.y.friction]
model = "coulomb-viscous"
coulomb_force_n = 0.4
viscosity_ns_per_m = 1.0
"""
FRICTION = 'name = "virtual-joystick"\nfriction = { x = { coulomb_forward = 0.4, coulomb_backward = 0.4 } }\n'


def rows_of(folder: Path, device: str) -> tuple[list[dict[str, Any]], Path]:
    text = WEBER.replace("[hand]", "[hand]\nstiffness = 2000.0\ndamping = 20.0\ntremor = 0.0")
    text = text.replace("[stimulus]", "[element]\nstiffness = 4000.0\ndamping = 4.0\n\n[stimulus]")
    (folder / "own.toml").write_text(OWN, encoding="utf-8")
    _, place = simulate(changed(folder, 'name = "virtual-joystick"\n', device, text), folder / "out")
    return trial_rows(place, measure), place.folder


def ratios(rows: list[dict[str, Any]], name: str) -> np.ndarray:
    return np.array([row[f"{name}_{k}"] - row[f"asked_{k}"] for row in rows for k in (1, 2)])


def test_a_compensated_joystick_lets_the_hand_feel_what_was_asked(tmp_path: Path) -> None:
    rows, _ = rows_of(tmp_path, FRICTION + 'friction_parameters = "own.toml"\ncompensation = 0.95\n')
    asked = np.array([row[f"asked_{k}"] for row in rows for k in (1, 2)])
    assert (np.abs(ratios(rows, "felt")) < 0.02 * asked).all()
    assert all(row["delivered_exact"] and row["felt_source"] == "truth" for row in rows)
    assert (ratios(rows, "delivered") == 0.0).all()


def test_what_a_device_has_of_its_own_is_felt_and_not_delivered(tmp_path: Path) -> None:
    rows, _ = rows_of(tmp_path, FRICTION)
    more = ratios(rows, "felt")
    # 0.4 N, and a viscosity of 1 N s/m whose work at the speeds of a minimum-jerk stroke is that of some 0.1 m/s
    assert (more > 0.4 + 0.08).all() and (more < 0.4 + 0.15).all()
    assert (ratios(rows, "delivered") == 0.0).all()


def test_without_the_truth_it_is_the_model_of_the_own_friction_with_its_interval(tmp_path: Path) -> None:
    _, folder = rows_of(tmp_path, FRICTION + 'friction_parameters = "own.toml"\ncompensation = 0.95\n')
    block = folder / "blocks" / "block-01"
    hide_the_hand(block)
    found = [measure(block, start) for start in starts(folder) if start["block"] == 1]
    assert found and all(one["felt_source"] == "model" for one in found)
    for one, start in zip(found, starts(folder), strict=False):
        assert one["felt_low_1"] < start["values"][0] < one["felt_high_1"]
        assert one["felt_high_1"] - one["felt_low_1"] > 2 * 0.02, "the doubt about the level is in the interval"


def test_without_anything_known_felt_is_blank_and_says_why(tmp_path: Path) -> None:
    _, folder = rows_of(tmp_path, FRICTION)
    block = folder / "blocks" / "block-01"
    hide_the_hand(block)
    found = measure(block, starts(folder)[0])
    assert found["felt_1"] is None and "not known" in found["stimulus_missing"]


@pytest.mark.parametrize(("name", "why"), [("stiffness", "gives back"), ("damping", "less than a millimetre")])
def test_what_was_felt_of_an_elements_parameter_is_blank_and_says_why(tmp_path: Path, name: str, why: str) -> None:
    _, folder = rows_of(tmp_path, FRICTION)
    start = starts(folder)[0]
    found = measure(folder / "blocks" / "block-01", {**start, "axis": f"element.{name}"})
    assert found["felt_1"] is None and why in found["stimulus_missing"]
    assert found["delivered_1"] == {"stiffness": 4000.0, "damping": 4.0}[name], "what was delivered is known"


def starts(folder: Path) -> list[dict[str, Any]]:
    journal = next(folder.glob("*_journal.jsonl"))
    return [one for one in read_journal(journal).records if one["record"] == "trial_start"]


def hide_the_hand(block: Path) -> None:
    """Let a recording be one of a device whose hand nobody knows."""
    (block / "stimulus.json").unlink(missing_ok=True)
    rows = np.load(block / "ticks.npy", mmap_mode="r+")
    rows["hand_force"] = np.nan
    rows.flush()


def test_what_goes_into_the_moving_mass_is_not_felt() -> None:
    """A mass of 0.5 kg that is pushed up to 0.4 m/s against 2 N, in an interval that ends in mid-motion."""
    time = np.arange(400) * 1e-3
    rows = np.repeat(NEUTRAL, len(time))
    rows["time"] = time
    rows["velocity"][:, 0], rows["position"][:, 0] = time, 0.5 * time**2
    rows["hand_force"] = (0.5 * 1.0 + 2.0, 0.0)
    spec = replace(VirtualJoystick().spec, mass=0.5)
    found = felt(rows, Ground(Coulomb(2.5)), Ground(Coulomb(2.6)), 0.1, 2.5, spec)
    assert found.value == pytest.approx(2.0, abs=1e-3) and found.source == "truth"


def test_a_limited_force_is_delivered_as_less(tmp_path: Path) -> None:
    _, folder = rows_of(tmp_path, FRICTION)
    rows = np.array(Recording(folder / "blocks" / "block-01").rows)
    rows = rows[rows["marker"] == starts(folder)[0]["markers"][0]]
    whole = delivered(rows, Causality.IMPEDANCE)
    assert (whole.share, whole.flagged, whole.exact) == (1.0, 0.0, True)
    rows["command"] *= 0.5
    assert not delivered(rows, Causality.IMPEDANCE).exact, "half a force, and no flag that says so"
    rows["status"] |= int(Status.LIMITED)
    cut = delivered(rows, Causality.IMPEDANCE)
    assert (cut.share, cut.flagged, cut.exact) == (pytest.approx(0.5), 1.0, True)


def test_what_was_measured_is_kept_and_made_anew_for_other_ticks(tmp_path: Path) -> None:
    _, folder = rows_of(tmp_path, FRICTION)
    block, start = folder / "blocks" / "block-01", starts(folder)[0]
    first = measure(block, start)
    kept = json.loads((block / "stimulus.json").read_text(encoding="utf-8"))
    kept["intervals"][str(start["markers"][0])]["felt"] = 99.0
    (block / "stimulus.json").write_text(json.dumps(kept), encoding="utf-8")
    assert measure(block, start)["felt_1"] == 99.0
    kept["ticks_sha256"] = "of another recording"
    (block / "stimulus.json").write_text(json.dumps(kept), encoding="utf-8")
    assert measure(block, start) == first
