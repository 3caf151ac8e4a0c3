"""The whole calibration, on emulated sticks whose truth is known, by persons who do what they are asked or do not."""

import dataclasses
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.joystick.balance import balance
from calibration.joystick.emulated import EmulatedPerson, OperatedHandSettings
from calibration.joystick.person import Look, Pair, Place
from calibration.joystick.procedure import Calibration, Request, calibrate
from calibration.joystick.response import Response
from calibration.joystick.stick import RawStick
from devices.emulators.pid import emulated_stick
from devices.emulators.pid.profile import Handle
from devices.emulators.pid.profiles import PROFILES
from devices.emulators.pid.stick import EmulatedStick
from devices.emulators.pid.usb_backend import EmulatedUsbBackend
from devices.joystick.device import PidJoystick
from devices.joystick.parameters import StickParameters, build_parameters, write_parameters
from devices.joystick.settings import EMULATORS, StickSettings
from haptics.errors import ConfigurationError, DeviceFault

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


def bench(profile: str, kind: type[EmulatedPerson] = EmulatedPerson, **more: Any) -> tuple[EmulatedUsbBackend, Any]:
    backend = emulated_stick(profile, hand=OperatedHandSettings(), **more)
    return backend, kind(backend.sticks[0])


def truth_of(stick: EmulatedStick) -> StickParameters:
    return build_parameters(stick.truths)


def request(stick: EmulatedStick, **more: Any) -> Request:
    own = stick.profile.handle
    scale = {} if "weight" in more else {"stated_max_force": truth_of(stick).force.max_force_n}
    return Request(**{"travel_x": 2.0 * own.half_width, "travel_y": 2.0 * own.half_height, **scale, **more})


def attempt(backend: EmulatedUsbBackend, person: Any, **more: Any) -> Calibration:
    stick = backend.sticks[0]
    with RawStick(StickSettings(emulated=True), backend) as raw:
        return calibrate(raw, person, request(stick, **more))


def near(found: Any, truth: Any, part: float) -> None:
    found, truth = np.array(found), np.array(truth)
    np.testing.assert_allclose(found, truth, atol=part * np.abs(truth).max(), rtol=0.0)


def left_alone(stick: EmulatedStick) -> bool:
    """Tell whether nothing pushes and the kernel's driver has the stick again."""
    return not stick.force.any() and not stick.owners and stick.profile.interface in stick.drivers


@functools.cache
def calibrated(profile: str) -> tuple[Calibration, StickParameters, EmulatedStick]:
    backend, person = bench(profile)
    stick = backend.sticks[0]
    try:
        found = attempt(backend, person)
    except DeviceFault as fault:  # a machine so busy that a thread waits for a tenth of a second; a person begins anew
        assert "in time" in str(fault)
        found = attempt(backend, person)
    return found, truth_of(stick), stick


# --- what is found -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("profile", EMULATORS)
def test_every_stick_is_found_to_be_what_it_is(profile: str) -> None:
    found, truth, stick = calibrated(profile)
    own = found.parameters
    near(own.axes.counts_to_m, truth.axes.counts_to_m, METRES)
    near(own.force.newton_to_level, truth.force.newton_to_level, NEWTONS)
    np.testing.assert_allclose(own.axes.centre_counts, truth.axes.centre_counts, atol=2.0 * truth.axes.count_quantum)
    assert own.axes.count_quantum == truth.axes.count_quantum
    assert own.axes.workspace_max_m == pytest.approx(truth.axes.workspace_max_m)
    assert own.force.max_force_n == truth.force.max_force_n
    assert own.force.source == "stated"
    assert own.handle.moving_mass_kg == pytest.approx(truth.handle.moving_mass_kg, rel=0.15)
    assert own.device == truth.device
    assert own.provenance.date and "stated largest force" in own.provenance.method
    assert found.facts["push_level"] < 0.1, "it was pushed gently"
    assert left_alone(stick)


@pytest.mark.slow
def test_a_stick_renders_with_the_file_that_came_of_it(tmp_path: Path) -> None:
    profile = "sidewinder-ff2"
    found, truth, _ = calibrated(profile)
    path = tmp_path / "stick.toml"
    write_parameters(path, found.parameters)
    still = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
    settings = {"emulated": True, "emulator": profile, "parameters": str(path), "hand": still}
    wanted = np.array((1.5, -2.0))
    with PidJoystick(settings) as device:
        end = time.perf_counter() + 0.1
        while time.perf_counter() < end:
            device.read()
            device.write(wanted)
            time.sleep(1e-3)
        stick = device.backend.sticks[0]
        count = 2.0 * truth.force.max_force_n / 255.0
        np.testing.assert_allclose(stick.force, wanted, atol=NEWTONS * 2.5 + count)
        np.testing.assert_allclose(device.read().position, stick.handle, atol=2e-3)


@pytest.mark.slow
def test_a_weight_gives_the_scale_and_the_moving_mass_however_the_axes_lie() -> None:
    backend, person = bench("turned")
    stick = backend.sticks[0]
    found, truth = attempt(backend, person, weight=0.2).parameters, truth_of(stick)
    near(found.axes.counts_to_m, truth.axes.counts_to_m, METRES)
    near(found.force.newton_to_level, truth.force.newton_to_level, NEWTONS)
    assert found.axes.count_quantum == 1
    assert found.force.source == "weight"
    assert found.force.max_force_n == pytest.approx(truth.force.max_force_n, rel=NEWTONS)
    assert found.handle.moving_mass_kg == pytest.approx(truth.handle.moving_mass_kg, rel=0.15)
    assert left_alone(stick)


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
        self._hand.wanted = (-self._hand.wanted[0], self._hand.wanted[1])


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Idle, "are those at"),
        (Mirrored, "but it did not"),
        (Restless, "was not held still at the far right corner"),
    ],
)
def test_a_person_who_does_something_else_is_told(kind: type[EmulatedPerson], words: str) -> None:
    backend, person = bench("openffboard", kind)
    with pytest.raises(ConfigurationError, match=words):
        attempt(backend, person)
    assert left_alone(backend.sticks[0])


def test_a_handle_that_is_held_or_motors_that_are_off_do_not_move() -> None:
    backend, person = bench("openffboard", Holding)
    with pytest.raises(ConfigurationError, match=r"effect 1 does not move the handle: .* at level 0\.05"):
        attempt(backend, person, push_level=0.05)
    assert left_alone(backend.sticks[0])


@pytest.mark.parametrize(
    ("load", "words"),
    [((1.0, 0.0), "off the direction straight away from you"), ((0.0, -30.0), "too weak to carry this weight")],
)
def test_a_weight_that_pulls_elsewhere_or_is_too_heavy_is_refused(load: Pair, words: str) -> None:
    backend, person = bench("openffboard")
    stick = backend.sticks[0]
    truth = truth_of(stick)
    own = np.linalg.inv(truth.force.newton_to_level) / stick.profile.handle.mass
    with RawStick(StickSettings(emulated=True), backend) as raw:
        person.hang(0.0, raw.counts)
        stick.plant.hand.load = load  # type: ignore[attr-defined]
        stick.wait(0.5)  # until the handle lies at the stop
        with pytest.raises(ConfigurationError, match=words):
            balance(raw, truth.axes, Response(own, 0.0, 0.0, 0.0, 0.0, 0.0, ()))
    assert left_alone(stick)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"travel_x": 0.0}, "--travel-x = 0: must be at least 0.01 and at most 1 m"),
        ({"travel_y": float("nan")}, "--travel-y = nan"),
        ({"weight": 0.1}, "one of them, not both"),
        ({"stated_max_force": None}, "either --weight KG"),
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
def test_it_can_be_ended_at_any_time(moment: str) -> None:
    backend, person = bench("openffboard", Impatient)
    person.moment = moment
    with pytest.raises(KeyboardInterrupt):
        attempt(backend, person)
    assert left_alone(backend.sticks[0])


def while_pushing(action: Callable[[EmulatedStick], None]) -> tuple[EmulatedUsbBackend, Any]:
    """Return a bench on which `action` happens in the middle of the first push."""
    backend, person = bench("openffboard")
    stick = backend.sticks[0]
    advance = stick.plant.advance

    def watched(level: Pair) -> None:
        advance(level)
        if any(level):
            stick.plant.advance = advance  # type: ignore[method-assign]
            action(stick)

    stick.plant.advance = watched  # type: ignore[method-assign]
    return backend, person


def test_ctrl_c_in_the_middle_of_a_push_takes_the_force_away() -> None:
    import _thread

    backend, person = while_pushing(lambda stick: _thread.interrupt_main())
    with pytest.raises(KeyboardInterrupt):
        attempt(backend, person)
    assert left_alone(backend.sticks[0])


def test_a_stick_that_is_pulled_out_is_a_fault() -> None:
    backend, person = while_pushing(lambda stick: stick.faults.set("unplug"))
    with pytest.raises(DeviceFault, match="unplugged"):
        attempt(backend, person)
    assert not backend.sticks[0].force.any()


def test_a_stick_that_says_nothing_any_more_is_a_fault() -> None:
    backend, person = while_pushing(lambda stick: stick.faults.set("short"))
    with pytest.raises(DeviceFault, match="no whole report"):
        attempt(backend, person)
    assert left_alone(backend.sticks[0])


def test_a_procedure_that_hangs_leaves_no_force() -> None:
    backend, _ = bench("openffboard")
    stick = backend.sticks[0]
    with RawStick(StickSettings(emulated=True), backend) as raw:
        for _ in range(30):
            raw.push((0.2, 0.0))
            time.sleep(1e-3)
        assert stick.force.any()
        time.sleep(raw.settings.keep_alive + raw.settings.force_duration)  # nobody pushes any more
        assert not stick.force.any()
