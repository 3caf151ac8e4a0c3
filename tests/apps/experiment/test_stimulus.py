"""Asked, delivered and felt stimuli, and the friction of the device measured at the start of a session."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.experiment.design import read_design
from apps.experiment.friction import changes, require_known
from apps.experiment.journal import read_journal, trial_rows
from apps.experiment.observers import make_observer
from apps.experiment.procedures.methods import trial_seed
from apps.experiment.screens.display import Display
from apps.experiment.session.presentation import Simulated
from apps.experiment.session.running import Request, begin
from apps.experiment.session.session import ExperimentSession
from apps.experiment.session.stages import OfflineStage
from apps.experiment.stimulus import Ground, Residual, delivered, felt_stimulus, measure
from calibration.parameters import read_parameter_file
from devices.common.friction import read_own_friction
from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid.stick import emulated_stick
from devices.virtual.joystick import VirtualJoystick
from haptics import Coulomb, MasslessImpedance
from haptics.device import Causality
from haptics.errors import ConfigurationError, DeviceFault
from haptics.recording.recording import Recording
from haptics.records import NEUTRAL, Status
from tests.apps.experiment.designs import WEBER, changed, friction_file
from tests.apps.experiment.session.running import simulate
from tests.devices.felt import FRICTION, ToAndFro, write_own_friction
from tests.devices.joystick.in_step import FRAME, BusClock, put_in_step

FRICTION_TABLE = 'name = "virtual-joystick"\nfriction = { x = { coulomb_forward = 0.4, coulomb_backward = 0.4 } }\n'


def rows_of(folder, device):
    text = WEBER.replace("[hand]", "[hand]\nstiffness = 2000.0\ndamping = 20.0\ntremor = 0.0")
    text = text.replace("[stimulus]", "[element]\nstiffness = 4000.0\ndamping = 4.0\n\n[stimulus]")
    (folder / "own.toml").write_text(friction_file(0.4, 0.4), encoding="utf-8")
    _, place = simulate(changed(folder, 'name = "virtual-joystick"\n', device, text), folder / "out")
    return trial_rows(place, measure), place.folder


def ratios(rows, name):
    return np.array([row[f"{name}_{k}"] - row[f"asked_{k}"] for row in rows for k in (1, 2)])


def test_compensated_joystick_renders_the_asked_level(tmp_path):
    rows, _ = rows_of(tmp_path, FRICTION_TABLE + 'friction_parameters = "own.toml"\ncompensation = 0.95\n')
    asked = np.array([row[f"asked_{k}"] for row in rows for k in (1, 2)])
    assert (np.abs(ratios(rows, "felt")) < 0.02 * asked).all()
    assert all(row["delivered_exact"] and row["felt_source"] == "truth" for row in rows)
    assert (ratios(rows, "delivered") == 0.0).all()


def test_device_friction_is_felt_but_not_delivered(tmp_path):
    rows, _ = rows_of(tmp_path, FRICTION_TABLE)
    more = ratios(rows, "felt")
    # 0.4 N, and a viscosity of 1 N s/m which acts at about 0.1 m/s in a minimum-jerk stroke
    assert (more > 0.4 + 0.08).all() and (more < 0.4 + 0.15).all()
    assert (ratios(rows, "delivered") == 0.0).all()


def test_felt_level_uses_the_friction_model_without_hand_force(tmp_path):
    _, folder = rows_of(tmp_path, FRICTION_TABLE + 'friction_parameters = "own.toml"\ncompensation = 0.95\n')
    block = folder / "blocks" / "block-01"
    hide_the_hand(block)
    found = [measure(block, start) for start in starts(folder) if start["block"] == 1]
    assert found and all(one["felt_source"] == "model" for one in found)
    for one, start in zip(found, starts(folder), strict=False):
        assert one["felt_low_1"] < start["values"][0] < one["felt_high_1"]
        assert one["felt_high_1"] - one["felt_low_1"] > 2 * 0.02, "the doubt about the level is in the interval"


def test_felt_level_is_blank_without_any_friction_model(tmp_path):
    _, folder = rows_of(tmp_path, FRICTION_TABLE)
    block = folder / "blocks" / "block-01"
    hide_the_hand(block)
    found = measure(block, starts(folder)[0])
    assert found["felt_1"] is None and "not known" in found["stimulus_missing"]


@pytest.mark.parametrize(("name", "value"), [("stiffness", 4000.0), ("damping", 4.0)])
def test_felt_parameter_of_the_element_is_blank(tmp_path, name, value):
    _, folder = rows_of(tmp_path, FRICTION_TABLE)
    found = measure(folder / "blocks" / "block-01", {**starts(folder)[0], "axis": f"element.{name}"})
    assert found["felt_1"] is None and found["stimulus_missing"]
    assert found["delivered_1"] == value


def starts(folder):
    journal = next(folder.glob("*_journal.jsonl"))
    return [one for one in read_journal(journal).records if one["record"] == "trial_start"]


def hide_the_hand(block):
    """Remove the hand force from a recording."""
    (block / "stimulus.json").unlink(missing_ok=True)
    rows = np.load(block / "ticks.npy", mmap_mode="r+")
    rows["hand_force"] = np.nan
    rows.flush()


def test_inertial_force_is_not_felt():
    """A mass of 0.5 kg that is pushed up to 0.4 m/s against 2 N, in an interval that ends in mid-motion."""
    time = np.arange(400) * 1e-3
    rows = np.repeat(NEUTRAL, len(time))
    rows["time"] = time
    rows["velocity"][:, 0], rows["position"][:, 0] = time, 0.5 * time**2
    rows["hand_force"] = (0.5 * 1.0 + 2.0, 0.0)
    spec = replace(VirtualJoystick().spec, mass=0.5)
    found = felt_stimulus(rows, Ground(Coulomb(2.5)), Ground(Coulomb(2.6)), 0.1, 2.5, spec)
    assert found["felt"] == pytest.approx(2.0, abs=1e-3) and found["source"] == "truth"


def test_limited_force_reduces_the_delivered_share(tmp_path):
    _, folder = rows_of(tmp_path, FRICTION_TABLE)
    rows = np.array(Recording(folder / "blocks" / "block-01").rows)
    rows = rows[rows["marker"] == starts(folder)[0]["markers"][0]]
    whole = delivered(rows, Causality.IMPEDANCE)
    assert (whole.share, whole.flagged, whole.exact) == (1.0, 0.0, True)
    rows["command"] *= 0.5
    assert not delivered(rows, Causality.IMPEDANCE).exact, "half a force, and no flag that says so"
    rows["status"] |= int(Status.LIMITED)
    cut = delivered(rows, Causality.IMPEDANCE)
    assert (cut.share, cut.flagged, cut.exact) == (pytest.approx(0.5), 1.0, True)


def test_measurement_is_cached_by_the_hash_of_the_ticks(tmp_path):
    _, folder = rows_of(tmp_path, FRICTION_TABLE)
    block, start = folder / "blocks" / "block-01", starts(folder)[0]
    first = measure(block, start)
    kept = json.loads((block / "stimulus.json").read_text(encoding="utf-8"))
    kept["intervals"][str(start["markers"][0])]["felt"] = 99.0
    (block / "stimulus.json").write_text(json.dumps(kept), encoding="utf-8")
    assert measure(block, start)["felt_1"] == 99.0
    kept["ticks_sha256"] = "of another recording"
    (block / "stimulus.json").write_text(json.dumps(kept), encoding="utf-8")
    assert measure(block, start) == first


class Adjusting(Simulated):
    """A respondent that sets 3 N after half a second of each interval."""

    polls = 0

    def explore(self, stage, plan):
        self.polls = self.polls % 100 + 1
        if self.polls == 25:
            stage.apply_parameters(self.design.config(plan.condition, 3.0))
        return self.polls == 100


def test_adjusted_value_is_delivered_and_felt_at_the_end_of_the_interval(tmp_path):
    text = WEBER.replace("[hand]", "[hand]\nstiffness = 2000.0\ndamping = 20.0\ntremor = 0.0").replace("easy = 0.2", "")
    Adjusting.design = design = read_design(changed(tmp_path, "strokes = 2", "strokes = 0", text))
    journal, who = begin(design, Request("P01", 1, 7, tmp_path / "out", {}, simulated=True))
    observer, show = make_observer({}, seed=trial_seed(7, "P01", 0, 0, 1)), Display(design)
    with journal:
        respondent = partial(Adjusting, observer)
        ExperimentSession(
            design, who, journal, respondent=respondent, stage=OfflineStage, display=show, again=False
        ).run()
    rows = [row for row in trial_rows(journal.place) if row["counts"]]
    assert rows and not any(row["delivered_exact"] for row in rows)
    for row in rows:
        assert row["asked_1"] < 2.6 and row["ticks_1"] > 1000
        for number in (1, 2):  # the change of the force is limited, and blended
            assert row[f"delivered_{number}"] == pytest.approx(3.0, rel=0.05)
            assert row[f"felt_{number}"] == pytest.approx(3.0, rel=0.05)


def test_felt_level_is_found_once_the_friction_file_is_restored(tmp_path):
    _, folder = rows_of(tmp_path, FRICTION_TABLE + 'friction_parameters = "own.toml"\ncompensation = 0.95\n')
    block, start = folder / "blocks" / "block-01", starts(folder)[0]
    hide_the_hand(block)
    kept = [folder / "own_friction.toml", tmp_path / "own.toml"]
    contents = [path.read_text(encoding="utf-8") for path in kept]
    for path in kept:
        path.unlink()
    assert "not known" in measure(block, start)["stimulus_missing"]
    written = (block / "stimulus.json").stat().st_mtime_ns
    assert "not known" in measure(block, start)["stimulus_missing"]
    assert (block / "stimulus.json").stat().st_mtime_ns == written
    kept[0].write_text(contents[0], encoding="utf-8")
    found = measure(block, start)
    assert found["felt_source"] == "model" and found["felt_low_1"] < start["values"][0] < found["felt_high_1"]


TICKS, SHARE = 1600, 0.7
MUCH, LITTLE = 1.0, 0.2
"""Frictions that are rendered [N]: more, and less, than compensation leaves of the stick's own 1.2 N."""


@pytest.fixture(scope="module", params=(MUCH, LITTLE))
def stroked(request, tmp_path_factory):
    """Return a friction level [N], the residual friction, and the felt level by the hand force or by a residual."""
    level, file = request.param, Path(write_own_friction(tmp_path_factory.mktemp("stick") / "own.toml"))
    file.write_text(file.read_text().replace("device = 'virtual-joystick'", ""))
    with pytest.MonkeyPatch.context() as patch:
        rows, spec = stroke(file, level, patch)

    def felt_by(residual):
        seen = rows.copy()
        seen["hand_force"] = rows["hand_force"] if residual is None else np.nan
        ground, more = Ground(Coulomb(level)), Ground(Coulomb(1.001 * level))
        return felt_stimulus(seen, ground, more, 1e-3 * level, level, spec, residual)

    return level, Residual(read_own_friction(str(file), "pid-joystick"), SHARE), felt_by


def stroke(file, level, patch):
    hand = ToAndFro(0, speed=0.08, reach=0.02)
    backend = emulated_stick("openffboard", hand=hand, period=0.0, friction=FRICTION)
    put_in_step(backend.units[0].time, patch)
    clock = BusClock(FRAME, backend.units[0].time)
    settings = {"emulated": True, "friction_parameters": str(file), "compensation": SHARE}
    device: Any = EmulatedPidJoystick(settings, clock=clock, backend=backend)
    element, rows = MasslessImpedance(Coulomb(level), 2000.0, 2.0, FRAME), np.repeat(NEUTRAL, TICKS)
    device.open()
    device.compensate(1.0)
    clock.start()
    plant = backend.units[0].plant.joystick
    for number, row in enumerate(rows):
        clock.wait(clock.tick + 1)
        device._opened().step()
        state = device.read()
        command = -element.step(state.velocity)
        device.write(command)
        row["time"], row["position"], row["velocity"] = FRAME * number, state.position, state.velocity
        row["command"], row["hand_force"], row["sticking"] = command, plant.hand_force, abs(command[0]) < 0.99 * level
    device.close()
    return rows[400:], device.spec


def test_felt_level_of_the_model_agrees_with_the_hand_force(stroked):
    _, residual, felt_by = stroked
    true, found = felt_by(None), felt_by(residual)
    assert (true["source"], found["source"]) == ("truth", "model")
    assert found["felt"] == pytest.approx(true["felt"], rel=0.03)


def test_commands_alone_underestimate_the_felt_level(stroked):
    level, residual, felt_by = stroked
    commanded = felt_by(replace(residual, share=1.0))["felt"]
    assert commanded == pytest.approx(level, rel=0.02)
    assert level != LITTLE or felt_by(None)["felt"] > 1.5 * commanded


EARLIER = friction_file(0.25, 0.4, reach=(0.01, 0.02))
LEVELS = "{ coulomb_forward = 0.4, coulomb_backward = 0.4 }"
DEVICE = f"""\
name = "virtual-joystick"
friction_parameters = "earlier.toml"
compensation = 0.95
friction = {{ x = {LEVELS}, y = {LEVELS} }}
"""
MEASURED = """\
[friction]
measure_each_session = true
excitation = { slowest = 0.01, speeds = 3, rounds = 2, strokes = 1 }

"""


def design_in(folder, device=DEVICE):
    (folder / "earlier.toml").write_text(EARLIER, encoding="utf-8")
    text = WEBER.replace('name = "virtual-joystick"\n', device).replace("[stimulus]", f"{MEASURED}[stimulus]")
    return changed(folder, "[hand]", "[hand]\nstiffness = 2000.0\ndamping = 20.0\ntremor = 0.0", text)


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured")
    result, place = simulate(design_in(folder), folder / "out")
    assert result["reason"] == "completed"
    return place


def event(place):
    (found,) = [one for one in read_journal(place.journal).records if one.get("name") == "own-friction"]
    return dict(found)


def test_session_compensates_the_measured_friction(session):
    block = json.loads((session.recording(1) / "recording.json").read_text())
    assert block["friction_file_hash"] == event(session)["sha256"]
    rows = trial_rows(session, measure)
    off = [abs(row[f"felt_{k}"] / row[f"asked_{k}"] - 1.0) for row in rows for k in (1, 2)]
    assert max(off) < 0.02, "with the earlier file, 0.15 N too little, it is more than 5 %"


def test_felt_level_uses_the_friction_file_of_the_session(session, tmp_path):
    folder = Path(shutil.copytree(session.folder, tmp_path / "copy"))
    hide_the_hand(folder / "blocks" / "block-01")
    start = starts(folder)[0]
    found = measure(folder / "blocks" / "block-01", start)
    assert found["felt_source"] == "model"
    assert found["felt_1"] == pytest.approx(start["values"][0], rel=0.02)
    assert found["felt_low_1"] < start["values"][0] < found["felt_high_1"]


def test_session_without_measurement_copies_the_friction_file(tmp_path):
    file = design_in(tmp_path)
    file.write_text(file.read_text().replace(MEASURED, ""))
    _, place = simulate(file, tmp_path / "out")
    assert (place.folder / "own_friction.toml").read_text() == EARLIER


def test_unmeasurable_friction_is_refused_with_the_line(tmp_path):
    file = design_in(tmp_path)
    text = file.read_text().replace("slowest = 0.01", "slowest = 0.9, fastest = 1.9")
    file.write_text(text)
    line = text[: text.index("measure_each_session")].count("\n") + 1
    with pytest.raises(ConfigurationError, match=rf"weber\.toml:{line}: .*measure_each_session.*0\.9"):
        read_design(file)


def test_uncertain_friction_is_not_compensated(tmp_path):
    (tmp_path / "wide.toml").write_text(EARLIER.replace("[0.38, 0.42]", "[-22.0, 22.8]"))
    joints = read_parameter_file(tmp_path / "wide.toml").joints
    with pytest.raises(DeviceFault, match=r"along y was not found: its uncertainty is 22 N.*Resume the session"):
        require_known(joints, tmp_path)
    require_known(joints[:1], tmp_path)


def test_measurements_without_intervals_are_not_compared(tmp_path):
    (tmp_path / "a.toml").write_text(EARLIER)
    bare = "\n".join(line for line in EARLIER.splitlines() if "interval_95" not in line and "= [" not in line)
    (tmp_path / "b.toml").write_text(bare)
    both = read_parameter_file(tmp_path / "a.toml")
    assert not changes(read_parameter_file(tmp_path / "b.toml"), both)
    assert not any(one.beyond for one in changes(both, both)) and len(changes(both, both)) == 4
