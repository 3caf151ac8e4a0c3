"""Complete calibrations of emulated sticks of known truth, with cooperative and wrong operators.

Most run in step with their bus, as fast as the machine can. One stick is calibrated in wall-clock time with the
threads of the driver, and faults are injected during a push.
"""

import dataclasses
import functools
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from calibration.joystick.forces import UNIT_MASS, Balance, Pusher, Response
from calibration.joystick.person import EmulatedPerson, Request
from calibration.joystick.procedure import _force
from calibration.joystick.stick import RawStick
from calibration.motions import drive
from devices.emulated.joystick import EmulatedPidJoystick, EmulatedStickSettings
from devices.emulators.pid.profiles import PROFILES, Handle
from devices.joystick.parameters import Force, write_parameters
from haptics.errors import ConfigurationError, DeviceFault
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from haptics.rendering.envelope import UNUSABLE
from tests.calibration.benches import (
    WALL,
    Holding,
    Idle,
    Mirrored,
    attempt,
    bench,
    left_alone,
    moved_here,
    near,
    truth_of,
)
from tests.calibration.test_joystick import METRES, NEWTONS
from tests.devices.joystick.doubles import STICKS
from tests.processes import until

TURNED = Handle(
    half_width=0.1,
    half_height=0.08,
    mass=0.3,
    damping=1.0,
    counts=((20e3, 250e3), (280e3, -15e3)),
    centre=(300, 400),
    limit=32767,
    gear=((2.0, -7.0), (-9.0, -1.0)),
)
"""X and Y are exchanged, one is mirrored, and the motors do not pull along the axes."""


@pytest.fixture(autouse=True, scope="module")
def turned_profile():
    patch = pytest.MonkeyPatch()
    patch.setitem(PROFILES, "turned", dataclasses.replace(PROFILES["openffboard"], handle=TURNED))
    yield
    patch.undo()


@functools.cache
def calibrated(profile, period=0.0):
    table = bench(profile, period=period)
    with tempfile.TemporaryDirectory() as place:
        try:
            found = attempt(table, Path(place) / "first")
        except DeviceFault as fault:  # a busy machine delayed a thread by 0.1 s; an operator would repeat it
            assert "in time" in str(fault) or "no usable sample" in str(fault)
            found = attempt(table, Path(place) / "second")
    return found, truth_of(table.stick), table.stick


# --- parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "period"),
    [
        *((profile, 0.0) for profile in STICKS),
        pytest.param("sidewinder-ff2", WALL, id="wall", marks=pytest.mark.wall_clock),
    ],
)
def test_the_parameters_of_every_stick_are_found(profile, period):
    found, truth, stick = calibrated(profile, period)
    own = found.parameters
    near(own.axes.counts_to_m, truth.axes.counts_to_m, METRES)
    near(own.force.newton_to_level, truth.force.newton_to_level, NEWTONS)
    np.testing.assert_allclose(own.axes.centre_counts, truth.axes.centre_counts, atol=2.0 * truth.axes.count_quantum)
    assert own.axes.count_quantum == truth.axes.count_quantum
    assert own.axes.workspace_max_m == pytest.approx(truth.axes.workspace_max_m)
    assert own.force.max_force_n == truth.force.max_force_n
    assert own.force.source == "stated"
    assert own.force.effects == 2
    assert own.force.release_s == pytest.approx(0.2, abs=0.03)
    assert own.handle.moving_mass_kg == pytest.approx(truth.handle.moving_mass_kg, rel=0.15)
    assert own.device == truth.device
    assert own.provenance.date and "stated largest force" in own.provenance.method
    assert found.facts["push_level"] < 0.1, "it was pushed gently"
    assert left_alone(stick)


@pytest.mark.wall_clock
def test_a_stick_renders_with_its_calibrated_parameters(tmp_path):
    profile = "sidewinder-ff2"
    found, truth, _ = calibrated(profile, WALL)
    path = tmp_path / "stick.toml"
    write_parameters(path, found.parameters)
    still = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
    settings = {"emulated": True, "emulator": profile, "parameters": str(path), "hand": still}
    wanted = np.array((1.5, -2.0))
    with EmulatedPidJoystick(settings) as device:
        stick = device.backend.units[0]

        def write(force):
            """Write a force for 0.1 s; return the distance that the handle moves in the second half."""
            end = time.perf_counter() + 0.05
            for _ in range(2):
                before = np.array(stick.handle)
                while time.perf_counter() < end:
                    device.read()
                    device.write(force)
                    time.sleep(1e-3)
                end += 0.05
            return float(np.hypot(*(stick.handle - before)))

        write(wanted)
        count = 2.0 * truth.force.max_force_n / 255.0
        np.testing.assert_allclose(stick.force, wanted, atol=NEWTONS * 2.5 + count)
        until(lambda: write(np.zeros(2)) < 1e-4, "the handle does not come to rest")
        assert np.hypot(*stick.handle) > 1e-3
        np.testing.assert_allclose(device.read().position, stick.handle, atol=2e-3)


def test_a_weight_gives_the_scale_and_the_moving_mass_with_turned_axes(tmp_path):
    table = bench("turned")
    stick = table.stick
    found, truth = attempt(table, tmp_path / "run", weight=0.2).parameters, truth_of(stick)
    near(found.axes.counts_to_m, truth.axes.counts_to_m, METRES)
    near(found.force.newton_to_level, truth.force.newton_to_level, NEWTONS)
    assert found.axes.count_quantum == 1
    assert found.force.source == "weight"
    assert found.force.max_force_n == pytest.approx(truth.force.max_force_n, rel=NEWTONS)
    assert found.handle.moving_mass_kg == pytest.approx(truth.handle.moving_mass_kg, rel=0.15)
    assert left_alone(stick)
    for part in ("pushes", "weight"):
        replayed = verify(Recording(tmp_path / f"run_{part}"))
        assert (replayed.mismatches, replayed.verdict) == (0, "ok")


# --- refusals ---------------------------------------------------------------------------------------------------------


class Restless(EmulatedPerson):
    """Keeps moving when it says that it has arrived."""

    def bring(self, place, look):
        super().bring(place, look)
        self.hand["wanted"][0] *= -1.0


@pytest.mark.parametrize(
    ("kind", "words"),
    [(Idle, "are those at"), (Mirrored, "but it did not"), (Restless, "was not held still at the far right corner")],
)
def test_wrong_motions_of_the_operator_are_refused(kind, words, tmp_path):
    table = bench("openffboard", kind)
    with pytest.raises(ConfigurationError, match=words):
        attempt(table, tmp_path / "run")
    assert left_alone(table.stick)


def test_a_held_handle_is_refused(tmp_path):
    table = bench("openffboard", Holding)
    with pytest.raises(ConfigurationError, match=r"effect 1 does not move the handle: .* at level 0\.05"):
        attempt(table, tmp_path / "run", push_level=0.05)
    assert left_alone(table.stick)
    assert Recording(tmp_path / "run_pushes").metadata["reason"] == "stopped"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["run_pushes", "run_pushes_of_one"]


@pytest.mark.parametrize(
    ("load", "words"),
    [((1.0, 0.0), "off the direction straight away from you"), ((0.0, -30.0), "too weak to carry this weight")],
)
def test_a_weight_that_pulls_elsewhere_or_is_too_heavy_is_refused(load, words, tmp_path):
    class Loading(EmulatedPerson):
        def hang(self, mass, look):
            super().hang(mass, look)
            self.hand["load"][:] = load
            self._wait(0.5)  # until the handle reaches the stop

    table = bench("openffboard", Loading)
    with pytest.raises(ConfigurationError, match=words):
        carry(table, tmp_path, 0.0)
    assert left_alone(table.stick)


def carry(table, place, weight, *faults):
    """Carry a weight with a stick of known response."""
    truth = truth_of(table.stick)
    own = np.linalg.inv(truth.force.newton_to_level) / table.stick.profile.handle.mass
    force = _force(UNIT_MASS, Response(own, 0.0, 0.0, 0.0, 0.0, 0.0, ()), None)
    with moved_here(table, *faults) as mover:
        write_parameters(place / "known.toml", dataclasses.replace(truth, force=force))
        balance = Balance(table.person, weight, force.max_force_n, lambda: (0, 0), 1e-3)
        return drive(mover(place / "known.toml"), balance.carry(), place / "run")


@pytest.mark.parametrize("fault", ["unplug", "stale", "nan"])
def test_a_stick_that_fails_while_it_carries_a_weight_has_no_force(fault, tmp_path):
    table, moment = bench("openffboard"), 4.0
    with pytest.raises(DeviceFault, match=r"at tick \d+"):
        carry(table, tmp_path, 0.2, f"{fault}@{moment}")
    assert not table.stick.force.any()
    rows = Recording(tmp_path / "run").rows
    before = rows["command"][np.searchsorted(rows["time"], moment) - 1]
    assert np.hypot(*before) > 1.0, "there is a force to lose"
    if fault != "unplug":
        bad = np.flatnonzero((rows["status"] & UNUSABLE != 0) & (rows["time"] >= moment))
        assert not rows["command"][bad[1:]].any()
        assert len(rows) == bad[-1] + 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"travel_x": 0.0}, "--travel-x = 0: must be at least 0.01 and at most 1 m"),
        ({"travel_y": float("nan")}, "--travel-y = nan"),
        ({"weight": 0.1}, "needs exactly one of two options"),
        ({"stated_max_force": None}, "exactly one of two options: --weight KG"),
        ({"stated_max_force": -1.0}, "--stated-max-force = -1"),
        ({"push_level": 2.0}, "--push-level = 2"),
        ({"gate": "oval"}, "unknown --gate 'oval'"),
    ],
)
def test_a_request_for_a_stick_is_validated(given, words):
    with pytest.raises(ConfigurationError, match=words):
        Request(**{"travel_x": 0.1, "travel_y": 0.1, "stated_max_force": 5.0, **given})


# --- the force ends with the calibration ------------------------------------------------------------------------------


class Impatient(EmulatedPerson):
    """Presses Ctrl-C at this moment."""

    moment = ""

    def bring(self, place, look):
        if self.moment == place.words:
            raise KeyboardInterrupt
        super().bring(place, look)

    def saw(self, motion):
        if self.moment == "push":
            raise KeyboardInterrupt
        return super().saw(motion)


@pytest.mark.parametrize("moment", ["the near left corner", "the middle", "push"])
def test_an_interrupt_at_any_time_leaves_no_force(moment, tmp_path):
    table = bench("openffboard", Impatient)
    table.person.moment = moment
    with pytest.raises(KeyboardInterrupt):
        attempt(table, tmp_path / "run")
    assert left_alone(table.stick)


def fail_during_a_push(place, action, error, words=None):
    """Push with a stick as a calibration does; return the stick once `action` has ended that with this error."""
    table = bench("openffboard", period=WALL)
    stick = table.stick
    advance = stick.plant.advance

    def watched(level):
        advance(level)
        if any(level):
            stick.plant.advance = advance
            action(stick)

    stick.plant.advance = watched
    truth = truth_of(stick)
    known = dataclasses.replace(truth, force=Force(newton_to_level=((1.0, 0.0), (0.0, 1.0)), max_force_n=1.0))
    write_parameters(place / "known.toml", known)
    pusher = Pusher(truth.axes, table.person, 0.3, 10000, lambda: (0, 0), 1e-3)
    with moved_here(table) as mover, pytest.raises(error, match=words):
        drive(mover(place / "known.toml"), pusher.explore(), place / "run")
    assert Recording(place / "run").metadata["reason"] in {"fault", "interrupted"}
    return stick


@pytest.mark.wall_clock  # an emulated stick in this process, whose samples must not be older than 100 ms
def test_ctrl_c_during_a_push_ends_the_force(tmp_path):
    import _thread

    stick = fail_during_a_push(tmp_path, lambda stick: _thread.interrupt_main(), KeyboardInterrupt)
    assert left_alone(stick)


@pytest.mark.wall_clock
@pytest.mark.parametrize(
    ("fault", "words"), [("unplug", "unplugged"), ("short", "stopped reporting the position of its handle|too old")]
)
def test_a_stick_that_fails_during_a_push_is_a_fault(fault, words, tmp_path):
    stick = fail_during_a_push(tmp_path, lambda stick: stick.faults.set(fault), DeviceFault, words)
    assert not stick.force.any()
    assert fault == "unplug" or left_alone(stick)


@pytest.mark.wall_clock
def test_a_stick_that_stops_reporting_before_a_push_is_a_fault():
    table = bench("openffboard", period=WALL)
    with RawStick(EmulatedStickSettings(emulated=True), table.backend) as raw:
        table.stick.faults.set("short")
        end = time.perf_counter() + 2.0
        with pytest.raises(DeviceFault, match="no complete report"):
            while time.perf_counter() < end:
                raw.counts()
                time.sleep(1e-3)
    assert left_alone(table.stick)
