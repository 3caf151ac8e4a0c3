"""The whole calibration, on emulated sticks whose truth is known, by persons who do what they are asked or do not.

Most are calibrated in step with their bus, as fast as the machine can. With the threads of the driver, by the wall's
clock, one stick is calibrated from beginning to end; and what must happen in an instant is tried while a push is on.
"""

import dataclasses
import functools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.joystick.balance import UNIT_MASS, Balance
from calibration.joystick.emulated import EmulatedPerson
from calibration.joystick.person import Look, Pair, Place
from calibration.joystick.procedure import Calibration, _force
from calibration.joystick.pushes import Pusher
from calibration.joystick.request import Request
from calibration.joystick.response import Response
from calibration.joystick.stick import RawStick
from calibration.motions import drive
from devices.emulated.joystick import EmulatedPidJoystick, EmulatedStickSettings
from devices.emulators.pid.profiles.known import PROFILES
from devices.emulators.pid.profiles.profile import Handle
from devices.emulators.pid.stick import EmulatedStick
from devices.joystick.parameters import Force, StickParameters, write_parameters
from haptics.errors import ConfigurationError, DeviceFault
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from haptics.rendering.envelope import UNUSABLE
from tests.calibration.benches import WALL, Table, attempt, bench, left_alone, moved_here, near, truth_of
from tests.devices.joystick.doubles import STICKS

METRES, NEWTONS = 0.005, 0.03
"""How near the truth the matrices must be, in parts of their largest entry."""

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
"""X and Y have changed places, one is mirrored, and the motors do not pull along the axes."""


@pytest.fixture(autouse=True, scope="module")
def turned_profile() -> Any:
    patch = pytest.MonkeyPatch()
    patch.setitem(PROFILES, "turned", dataclasses.replace(PROFILES["openffboard"], handle=TURNED))
    yield
    patch.undo()


@functools.cache
def calibrated(profile: str, period: float = 0.0) -> tuple[Calibration, StickParameters, EmulatedStick]:
    table = bench(profile, period=period)
    with tempfile.TemporaryDirectory() as place:
        try:
            found = attempt(table, Path(place) / "first")
        except DeviceFault as fault:  # a machine so busy that a thread waits for 0.1 s; a person begins anew
            assert "in time" in str(fault)
            found = attempt(table, Path(place) / "second")
    return found, truth_of(table.stick), table.stick


# --- what is found -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "period"),
    [
        *((profile, 0.0) for profile in STICKS),
        pytest.param("sidewinder-ff2", WALL, id="wall", marks=pytest.mark.wall_clock),
    ],
)
def test_every_stick_is_found_to_be_what_it_is(profile: str, period: float) -> None:
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


def test_a_stick_renders_with_the_file_that_came_of_it(tmp_path: Path) -> None:
    profile = "sidewinder-ff2"
    found, truth, _ = calibrated(profile, WALL)
    path = tmp_path / "stick.toml"
    write_parameters(path, found.parameters)
    still = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
    settings = {"emulated": True, "emulator": profile, "parameters": str(path), "hand": still}
    wanted = np.array((1.5, -2.0))
    with EmulatedPidJoystick(settings) as device:
        end = time.perf_counter() + 0.1
        while time.perf_counter() < end:
            device.read()
            device.write(wanted)
            time.sleep(1e-3)
        stick = device.backend.sticks[0]
        count = 2.0 * truth.force.max_force_n / 255.0
        np.testing.assert_allclose(stick.force, wanted, atol=NEWTONS * 2.5 + count)
        np.testing.assert_allclose(device.read().position, stick.handle, atol=2e-3)


def test_a_weight_gives_the_scale_and_the_moving_mass_however_the_axes_lie(tmp_path: Path) -> None:
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


# --- what is refused -----------------------------------------------------------------------------------------------


class Idle(EmulatedPerson):
    """Says that it is done, and has done nothing."""

    def bring(self, place: Place, look: Look) -> None:
        look()


class Mirrored(EmulatedPerson):
    """Takes left for right."""

    def bring(self, place: Place, look: Look) -> None:
        super().bring(place._replace(x=-place.x), look)


class Holding(EmulatedPerson):
    """Does not let go."""

    def let_go(self, look: Look) -> None:
        pass


class Restless(EmulatedPerson):
    """Is on the way to somewhere else when it says that it is there."""

    def bring(self, place: Place, look: Look) -> None:
        super().bring(place, look)
        self.hand["wanted"][0] *= -1.0


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Idle, "are those at"),
        (Mirrored, "but it did not"),
        (Restless, "was not held still at the far right corner"),
    ],
)
def test_a_person_who_does_something_else_is_told(kind: type[EmulatedPerson], words: str, tmp_path: Path) -> None:
    table = bench("openffboard", kind)
    with pytest.raises(ConfigurationError, match=words):
        attempt(table, tmp_path / "run")
    assert left_alone(table.stick)


def test_a_handle_that_is_held_or_motors_that_are_off_do_not_move(tmp_path: Path) -> None:
    table = bench("openffboard", Holding)
    with pytest.raises(ConfigurationError, match=r"effect 1 does not move the handle: .* at level 0\.05"):
        attempt(table, tmp_path / "run", push_level=0.05)
    assert left_alone(table.stick)
    assert Recording(tmp_path / "run_pushes").metadata["reason"] == "stopped"


@pytest.mark.parametrize(
    ("load", "words"),
    [((1.0, 0.0), "off the direction straight away from you"), ((0.0, -30.0), "too weak to carry this weight")],
)
def test_a_weight_that_pulls_elsewhere_or_is_too_heavy_is_refused(load: Pair, words: str, tmp_path: Path) -> None:
    class Loading(EmulatedPerson):
        def hang(self, mass: float, look: Look) -> None:
            super().hang(mass, look)
            self.hand["load"][:] = load
            self._wait(0.5)  # until the handle lies at the stop

    table = bench("openffboard", Loading)
    with pytest.raises(ConfigurationError, match=words):
        carry(table, tmp_path, 0.0)
    assert left_alone(table.stick)


def carry(table: Table, place: Path, weight: float, *faults: str) -> Recording:
    """Let a stick whose response is known carry a weight."""
    truth = truth_of(table.stick)
    force = _force(UNIT_MASS, Response(*_response(table.stick)), None)
    with moved_here(table, *faults) as mover:
        write_parameters(place / "known.toml", dataclasses.replace(truth, force=force))
        balance = Balance(table.person, weight, force.max_force_n, lambda: (0, 0), 1e-3)
        return drive(mover(place / "known.toml"), balance.carry(), place / "run")


@pytest.mark.parametrize("fault", ["unplug", "stale", "nan"])
def test_a_stick_that_goes_bad_while_it_carries_a_weight_is_left_safe(fault: str, tmp_path: Path) -> None:
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


def _response(stick: EmulatedStick) -> tuple[Any, ...]:
    own = np.linalg.inv(truth_of(stick).force.newton_to_level) / stick.profile.handle.mass
    return own, 0.0, 0.0, 0.0, 0.0, 0.0, ()


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
def test_a_wrong_request_is_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Request(**{"travel_x": 0.1, "travel_y": 0.1, "stated_max_force": 5.0, **given})


# --- whatever ends it, there is no force -----------------------------------------------------------------------------


class Impatient(EmulatedPerson):
    """Presses Ctrl-C at a certain moment."""

    moment = ""

    def bring(self, place: Place, look: Look) -> None:
        self._perhaps(f"bring {place.words}")
        super().bring(place, look)

    def saw(self, motion: Pair) -> bool:
        self._perhaps("saw")
        return super().saw(motion)

    def _perhaps(self, moment: str) -> None:
        if moment == self.moment:
            raise KeyboardInterrupt


@pytest.mark.parametrize("moment", ["bring the near left corner", "bring the middle", "saw"])
def test_it_can_be_ended_at_any_time(moment: str, tmp_path: Path) -> None:
    table = bench("openffboard", Impatient)
    table.person.moment = moment
    with pytest.raises(KeyboardInterrupt):
        attempt(table, tmp_path / "run")
    assert left_alone(table.stick)


def in_the_middle_of_a_push(
    place: Path, action: Callable[[EmulatedStick], None], error: type[BaseException], words: str | None = None
) -> EmulatedStick:
    """Push with a stick as a calibration does; return the stick once `action` has ended that with this error."""
    table = bench("openffboard", period=WALL)
    stick = table.stick
    advance = stick.plant.advance

    def watched(level: Pair) -> None:
        advance(level)
        if any(level):
            stick.plant.advance = advance  # type: ignore[method-assign]
            action(stick)

    stick.plant.advance = watched  # type: ignore[method-assign]
    truth = truth_of(stick)
    known = dataclasses.replace(truth, force=Force(newton_to_level=((1.0, 0.0), (0.0, 1.0)), max_force_n=1.0))
    write_parameters(place / "known.toml", known)
    pusher = Pusher(truth.axes, table.person, 0.3, 10000, lambda: (0, 0), 1e-3)
    with moved_here(table) as mover, pytest.raises(error, match=words):
        drive(mover(place / "known.toml"), pusher.explore(), place / "run")
    assert Recording(place / "run").metadata["reason"] in {"fault", "interrupted"}
    return stick


@pytest.mark.wall_clock  # an emulated stick in this process, whose samples must not be older than 100 ms
def test_ctrl_c_in_the_middle_of_a_push_takes_the_force_away(tmp_path: Path) -> None:
    import _thread

    stick = in_the_middle_of_a_push(tmp_path, lambda stick: _thread.interrupt_main(), KeyboardInterrupt)
    assert left_alone(stick)


def test_a_stick_that_is_pulled_out_is_a_fault(tmp_path: Path) -> None:
    stick = in_the_middle_of_a_push(tmp_path, lambda stick: stick.faults.set("unplug"), DeviceFault, "unplugged")
    assert not stick.force.any()


def test_a_stick_that_says_nothing_any_more_is_a_fault(tmp_path: Path) -> None:
    words = "stopped reporting the position of its handle|too old"
    stick = in_the_middle_of_a_push(tmp_path, lambda stick: stick.faults.set("short"), DeviceFault, words)
    assert left_alone(stick)


def test_a_stick_that_says_nothing_any_more_before_it_is_pushed_is_a_fault() -> None:
    table = bench("openffboard", period=WALL)
    with RawStick(EmulatedStickSettings(emulated=True), table.backend) as raw:
        table.stick.faults.set("short")
        end = time.perf_counter() + 2.0
        with pytest.raises(DeviceFault, match="no complete report"):
            while time.perf_counter() < end:
                raw.counts()
                time.sleep(1e-3)
    assert left_alone(table.stick)
