"""Motions that excite friction: plans within limits, a joystick and an arm that are moved, and interruptions."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import devices
from calibration.data.joint_recording import Source
from calibration.data.signals import evenly
from calibration.friction import FitSettings
from calibration.identification import IdentificationOptions, identify
from calibration.motions import Mover, rows_of
from calibration.motions.excitation import (
    Excitation,
    HandleExcitation,
    approach,
    joint_recording,
    mean_force,
    plan,
    recorded_axes,
)
from calibration.parameters import ParameterFile, Provenance, write_parameter_file
from haptics.device import Causality
from haptics.errors import ConfigurationError, DeviceFault
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from haptics.records import ROW
from tests.devices.felt import FRICTION
from tests.haptics.doubles import BenchDevice, make_spec

# --- planned motions --------------------------------------------------------------------------------------------------

PERIOD = 1e-3
SPEC = make_spec(mass=0.2, max_force=10.0, max_acceleration=50.0)
MIDDLE = (np.array(SPEC.workspace_min) + np.array(SPEC.workspace_max)) / 2.0
TRAVEL = np.array(SPEC.workspace_max) - np.array(SPEC.workspace_min)


@settings(max_examples=6)
@given(
    speeds=st.tuples(st.floats(1e-4, 0.02), st.floats(0.03, 0.5), st.integers(2, 6)),
    strokes=st.integers(1, 3),
    acceleration=st.floats(0.5, 20.0),
)
def test_the_motion_stays_within_the_limits(speeds, strokes, acceleration):
    excitation = Excitation(*speeds, strokes=strokes, acceleration=acceleration, stroke_time=0.2)
    motion = plan(excitation, SPEC, PERIOD)
    assert (np.abs(motion.position - MIDDLE) <= 0.5 * TRAVEL).all()
    assert np.abs(motion.velocity).max() <= min(excitation.fastest, SPEC.max_speed) * (1.0 + 1e-9)
    steepest = np.abs(np.diff(motion.velocity, axis=0)).max() / PERIOD
    assert steepest <= min(acceleration, SPEC.max_force / 0.2) * (1.0 + 1e-6)
    np.testing.assert_allclose(motion.position[-1], MIDDLE, atol=1e-9)
    np.testing.assert_allclose(np.cumsum(motion.velocity, axis=0) * PERIOD, motion.position - MIDDLE, atol=1e-9)


def test_each_round_moves_one_axis_at_every_speed_in_both_directions():
    excitation = Excitation(rounds=3)
    motion = plan(excitation, SPEC, PERIOD)
    for axis in range(2):
        assert len(motion.parts[axis]) == excitation.rounds
        for part in motion.parts[axis]:
            velocity = motion.velocity[part, axis]
            assert not motion.velocity[part, 1 - axis].any()
            for speed in np.geomspace(excitation.slowest, excitation.fastest, excitation.speeds):
                for side in (1.0, -1.0):
                    steady = np.abs(velocity - side * speed) < 0.01 * speed
                    assert steady.sum() * PERIOD > 0.2 * excitation.stroke_time
        assert abs(np.concatenate([motion.velocity[part, axis] for part in motion.parts[axis]]).mean()) < 1e-9
    assert motion.parts[1][-1].stop == len(motion)


def test_the_handle_moves_to_the_middle_slowly():
    start = np.array((0.03, -0.02))
    position, velocity = approach(start, MIDDLE, PERIOD)
    np.testing.assert_allclose(position[-1], MIDDLE, atol=1e-12)
    assert np.hypot(*velocity.T).max() <= 0.05 * (1.0 + 1e-9)
    assert np.hypot(*(position[0] - start)) < 1e-4
    assert len(approach(MIDDLE, MIDDLE, PERIOD)[0]) == 0


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Excitation(slowest=0.2), "excitation.slowest = 0.2 m/s: must be less than"),
        (lambda: Excitation(rounds=2.5), "excitation.rounds = 2.5: must be a whole number"),
        (lambda: plan(Excitation(slowest=1e-3), make_spec(max_speed=1e-3, mass=0.2), PERIOD), "the device allows"),
    ],
)
def test_impossible_motions_are_refused(make, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        make()


# --- a joystick is moved ----------------------------------------------------------------------------------------------

NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
SHORT = Excitation(speeds=6, rounds=2, strokes=1, stroke_time=0.5)
WISHES = IdentificationOptions("stribeck-asymmetric", "auto", settings=FitSettings(fit_inertia=True))


def joystick(clock=None, **changes):
    return devices.create_device("virtual-joystick", {"friction": FRICTION, "hand": NOBODY, **changes}, clock=clock)


def mover(**changes):
    """Return a mover of virtual joysticks, and the list of the joysticks that it makes."""
    made: list[Any] = []

    def make(more, clock):
        made.append(joystick(clock, **changes))
        return made[-1]

    return Mover(make, live=False), made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The recording of an excitation."""
    path = tmp_path_factory.mktemp("excited") / "run"
    HandleExcitation(SHORT).run(mover()[0], path)
    return path


@pytest.fixture(scope="module")
def own_file(folder):
    """The parameter file that was identified from the recording."""
    measured = recorded_axes(folder)
    joints = tuple(identify(rounds, WISHES).parameters() for rounds in measured.values())
    source = measured["x"][0].source
    write_parameter_file(folder.parent / "own.toml", ParameterFile(Provenance(device=source.device), joints))
    return str(folder.parent / "own.toml")


def compensated(own_file, hand):
    own = {"friction_parameters": own_file} if own_file else {}
    device = joystick(None, hand=hand, **own)
    device.open()
    device.compensate(1.0)
    return device


# --- recordings with skipped ticks ------------------------------------------------------------------------------------


def test_late_commands_keep_their_impulse():
    given, command = np.array([0.0, 0.001, 0.006, 0.007]), np.array([1.0, -2.0, 3.0, 0.0])
    time = np.arange(0.0, 0.007, 1e-3)
    force = mean_force(given, command, 1e-3, time)
    assert force == pytest.approx([1.0, -2.0, -2.0, -2.0, -2.0, -2.0, 3.0])


def test_missing_samples_are_interpolated_and_long_gaps_are_marked():
    time = np.arange(0.0, 1.0, 1e-3)
    kept = np.ones(len(time), bool)
    kept[[112, 212, 213]] = kept[500:509] = False  # at crests
    wave = np.sin(2.0 * np.pi * 20.0 * time)
    even, (found,), gaps = evenly(time[kept], wave[kept, None])
    assert even == pytest.approx(time)
    assert np.flatnonzero(gaps).tolist() == [*range(499, 509)]
    linear = np.interp(time, time[kept], wave[kept])
    assert np.abs(found - wave)[~gaps].max() < np.abs(linear - wave)[~gaps].max() / 20.0


def simulated_round(rng, skipped):
    """Return the rows of a controlled handle of 0.2 kg and 0.5 N s/m whose servo skips a share of the ticks.

    Samples are 0.9 ms old and have steps of 10 um. Commands act 0.1 ms after their tick.
    """
    whole = plan(Excitation(rounds=2), SPEC, PERIOD)
    way = whole.position[whole.parts[0][0], 0]
    rows, step = np.zeros(len(way), ROW), 1e-4
    place, speed, force, last, rate, before = way[0], 0.0, 0.0, way[0], 0.0, way[0]
    past, pause, written, pending = [place], 0, 0, (0, 0.0)
    for k in range(len(way)):
        pause = pause - 1 if pause else int(rng.integers(1, 8)) * int(rng.random() < skipped)
        if pause == 0:
            sample = np.round(past[max(10 * k - 9, 0)] / 1e-5) * 1e-5
            rate += 0.2 * ((sample - last) / PERIOD - rate)
            error, error_rate = way[k] - sample, (way[k] - before) / PERIOD - rate
            last = sample
            row = rows[written]
            row["tick"], row["time"], row["sample_age"] = k, k * PERIOD, 9e-4
            row["position"][0], row["proxy"][0] = sample, way[k]
            pending = 10 * k + 1, 2000.0 * error + 28.0 * error_rate
            row["command"][0] = pending[1]
            written += 1
        before = way[k]
        for n in range(10 * k, 10 * k + 10):
            force = pending[1] if n == pending[0] else force
            speed += step * (force - 0.5 * speed) / 0.2
            place += step * speed
            past.append(place)
    return rows[1:written]


def test_skipped_ticks_do_not_bias_the_friction():
    rng = np.random.default_rng(4)
    rounds = [joint_recording(simulated_round(rng, 0.004), 0, Source("simulated", "0" * 64)) for _ in range(3)]
    with_mass = FitSettings(fit_inertia=True, common_offset=True)
    found = identify(rounds, IdentificationOptions("viscous", "auto", settings=with_mass)).fit
    assert found.excluded["gaps"] > 0
    for name, truth in (("viscosity", 0.5), ("inertia", 0.2)):
        low, high = found.intervals[name]
        assert low < truth < high, name
        assert high - low < 0.1 * truth, name


def test_the_levels_and_the_mass_of_a_joystick_are_found(folder):
    for axis, rounds in recorded_axes(folder).items():
        found = identify(rounds, WISHES).fit.values
        for name, truth in FRICTION[axis].items():
            tolerance = 0.03 if name == "stribeck_velocity" else 0.005
            assert found[name] == pytest.approx(truth, rel=tolerance), name
        assert found["inertia"] == pytest.approx(0.2, rel=0.01)


def test_a_run_is_replayed_bit_by_bit(folder):
    found = verify(Recording(folder))
    assert (found.mismatches, found.verdict) == (0, "ok")
    assert [label for label, _ in rows_of(Recording(folder))] == ["hold", "x 1", "x 2", "y 1", "y 2"]


def test_an_interrupt_leaves_no_force_and_a_complete_recording(tmp_path):
    def interrupt(seconds):
        if seconds > 4.0:
            raise KeyboardInterrupt

    moved, made = mover()
    with pytest.raises(KeyboardInterrupt):
        HandleExcitation(SHORT).run(moved, tmp_path / "run", progress=interrupt)
    assert not made[-1]._record["acting"].any()
    recording = Recording(tmp_path / "run")
    assert (recording.metadata["state"], recording.metadata["reason"]) == ("complete", "interrupted")
    assert len(recording.rows) == recording.metadata["certificate"]["ticks"] > 2000
    np.testing.assert_array_equal(np.diff(recording.rows["tick"]), 1)
    assert verify(recording).mismatches == 0
    with pytest.raises(ConfigurationError, match="interrupted before both axes"):
        recorded_axes(tmp_path / "run")


def test_a_held_handle_ends_the_motion_without_force(tmp_path):
    point, rest = [0.0, 0.0], {"rest": 60.0, "rest_force": 0.0, "rest_grip": 1.0, "tremor": 0.0}
    moved, made = mover(hand={"name": "minimum-jerk", "points": [point, point], "stiffness": 3000.0, **rest})
    with pytest.raises(DeviceFault, match="20 mm from where it should be"):
        HandleExcitation(SHORT).run(moved, tmp_path / "run")
    assert not made[-1]._record["acting"].any()
    assert Recording(tmp_path / "run").metadata["reason"] == "fault"


def test_a_handle_that_runs_away_ends_the_motion_without_force(tmp_path):
    moved, made = mover(friction=None)

    def reversed_stick(more, clock):
        device = moved.factory(more, clock)
        write = device.write
        device.write = lambda command: write(-command)
        return device

    with pytest.raises(DeviceFault, match="did not follow its motion"):
        HandleExcitation(SHORT).run(Mover(reversed_stick, live=False), tmp_path / "run")
    assert not made[-1]._record["acting"].any()


def test_an_admittance_device_is_refused(tmp_path):
    arm = Mover(lambda more, clock: BenchDevice(clock, Causality.ADMITTANCE), live=False)
    with pytest.raises(ConfigurationError, match="is an admittance device"):
        HandleExcitation(SHORT).run(arm, tmp_path / "run")
    assert not (tmp_path / "run").exists()
