"""One effect whose direction is streamed, for firmware that cannot add effects up."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid import emulated_stick
from devices.emulators.pid.profiles.known import PROFILES
from devices.emulators.pid.stick import EmulatedStick
from devices.joystick.families import GENERIC
from devices.joystick.forces import TurnedForces
from devices.joystick.parameters import build_parameters, format_parameters, parse_parameters, write_parameters
from devices.joystick.playbook import Playbook
from haptics.errors import ConfigurationError
from tests.devices.joystick.doubles import STICKS, STILL, FakeTransport, described, session
from tests.devices.joystick.in_step import FRAME, BusClock, put_in_step

pytestmark = pytest.mark.usefixtures("compiled")

FROM_LEFT = 1.5 * math.pi
SUMS = ("adds", "latest", "turns")


class Stick:
    """What a stick has of a force, by a clock that a test turns; its reports are unpacked by its own tables."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, profile: str = "openffboard") -> None:
        self.now, self.profile = 100.0, PROFILES[profile]
        monkeypatch.setattr("devices.joystick.forces.time", SimpleNamespace(perf_counter=lambda: self.now))
        book = Playbook(described(profile), GENERIC)
        self.forces = TurnedForces(book, 1, 0.04, book.effect(1, FROM_LEFT, 0.2))
        self.direction, self.magnitude = self.profile.direction({"axes": 4, **self._angle(FROM_LEFT)}), 0.0
        self.starts = self.reports = 0

    def _angle(self, radians: float) -> dict[str, int]:
        return {"direction": round(radians / math.tau * self.profile.scales.direction), "direction_y": 0}

    def command(self, x: float, y: float) -> None:
        self.forces.levels.publish(x, y, self.now)

    @property
    def level(self) -> np.ndarray:
        return self.magnitude * np.array(self.direction) * self.profile.sense

    def send(self, taken: bool = True) -> list[np.ndarray]:
        """Send what there is; return the levels after each report."""
        reports, seen = self.forces.reports(), []
        report = next(reports, None)
        while report is not None:
            if taken:
                self._take(report)
            seen.append(self.level)
            try:
                report = reports.send(taken)
            except StopIteration:
                break
        return seen

    def _take(self, report: bytes) -> None:
        layout = self.profile.layouts[report[0]]
        fields = layout.unpack(report)
        self.reports += 1
        if layout.kind == "constant":
            self.magnitude = fields["magnitude"] / self.profile.scales.constant
        elif layout.kind == "set-effect":
            assert (fields["axes"], fields["type"], fields["duration"]) == (4, 1, 200)
            self.direction = self.profile.direction(fields)
        else:
            self.starts += 1


@pytest.fixture(params=STICKS)
def stick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Stick:
    return Stick(monkeypatch, request.param)


def test_every_force_arrives_in_size_and_direction(stick: Stick) -> None:
    grain = math.tau / stick.profile.scales.direction
    for size, degrees in itertools.product((0.05, 0.5, 1.0), range(0, 360, 7)):
        wanted = size * np.array((math.cos(math.radians(degrees)), math.sin(math.radians(degrees))))
        stick.command(*wanted)
        stick.send()
        assert np.hypot(*(stick.level - wanted)) < size * grain + 1.0 / stick.forces._full_scale


def test_a_force_that_turns_back_goes_through_zero_and_never_elsewhere(stick: Stick) -> None:
    stick.send()
    way = np.array((0.6, 0.8))
    stick.command(*way)
    stick.send()
    for part in (0.5, 0.1, -0.1, -0.5, -1.0, 1.0):
        stick.command(*(part * way))
        between = stick.send()
        assert all(abs(x * way[1] - y * way[0]) < 0.02 for x, y in between), "along the same line"
        np.testing.assert_allclose(stick.level, part * way, atol=0.03)


def test_between_the_two_reports_of_a_force_the_level_is_never_much_more_than_both(stick: Stick) -> None:
    stick.command(0.5, 0.0)
    stick.send()
    before = stick.level
    for degrees in (30, 80, 100, 200, 330, 150, 10):
        wanted = 0.5 * np.array((math.cos(math.radians(degrees)), math.sin(math.radians(degrees))))
        stick.command(*wanted)
        between = stick.send()
        allowed = np.hypot(*(wanted - before)) + 0.02
        assert all(np.hypot(*(level - wanted)) <= allowed for level in between)
        before = stick.level


def test_without_a_force_no_direction_is_sent_and_the_effect_is_kept_alive(stick: Stick) -> None:
    stick.command(0.5, 0.5)
    stick.send()
    sent = stick.reports
    for _ in range(200):
        stick.now += 1e-3
        stick.command(0.0, 0.0)
        stick.send()
    assert not stick.forces.on
    assert stick.reports - sent - 1 == pytest.approx(stick.starts, abs=1)
    assert 4 <= stick.starts <= 7


def test_a_command_that_nobody_repeats_is_replaced_by_none(stick: Stick) -> None:
    stick.command(0.5, 0.5)
    stick.send()
    stick.now += 0.041
    stick.send()
    assert stick.magnitude == 0.0


def test_what_was_not_taken_is_sent_again(stick: Stick) -> None:
    stick.command(0.3, -0.4)
    stick.send(taken=False)
    assert stick.forces.on and stick.forces.idle() == 0.0
    stick.send()
    np.testing.assert_allclose(stick.level, (0.3, -0.4), atol=0.02)


def test_it_takes_one_place_of_the_pool() -> None:
    transport = FakeTransport()
    transport.pool_answers = [bytes((9, 0, 1, 1))]
    session(transport, count=1).start()
    assert sum(text.startswith("set") for text in transport.sent) == 1


# --- the whole driver ------------------------------------------------------------------------------------------------


@pytest.fixture
def cannot_add() -> Iterator[None]:
    """Sticks with each way of making a sum, under the names of the ways."""
    with pytest.MonkeyPatch.context() as patch:
        for sums in SUMS:
            patch.setitem(PROFILES, sums, replace(PROFILES["openffboard"], sums=sums))
        yield


def forces(sums: str, effects: int, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> tuple[EmulatedStick, list]:
    """Return a stick, and the forces wanted and had in steps around the circle, (n, 2, 2) [N]."""
    backend = emulated_stick(sums, hand=STILL, period=0.0)
    (stick,) = backend.sticks
    sleep = put_in_step(stick.time, monkeypatch)
    known = build_parameters(stick.truths)
    file = tmp_path / "stick.toml"  # type: ignore[operator]
    write_parameters(file, replace(known, force=replace(known.force, effects=effects)))
    settings = {"emulated": True, "emulator": stick.profile.name, "parameters": str(file), "hand": STILL}
    seen = []
    with EmulatedPidJoystick(settings, clock=BusClock(FRAME, stick.time), backend=backend) as device:
        for degrees in range(20, 380, 40):
            wanted = 3.0 * np.array((math.cos(math.radians(degrees)), math.sin(math.radians(degrees))))
            for _ in range(8):
                device.read()
                device.write(wanted)
                sleep(FRAME)
            seen.append((wanted, stick.force))
    return stick, seen


@pytest.mark.usefixtures("cannot_add")
@pytest.mark.parametrize("sums", SUMS)
@pytest.mark.parametrize("effects", [1, 2])
def test_firmware_that_cannot_add_plays_the_force_by_one_effect_only(
    sums: str, effects: int, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    stick, seen = forces(sums, effects, tmp_path, monkeypatch)
    off = max(float(np.hypot(*(had - wanted))) for wanted, had in seen)
    assert (off < 0.05) == (effects == 1 or sums == "adds")
    assert len(stick.received("create")) == effects
    assert not stick.force.any()


def test_the_largest_force_of_one_effect_is_that_of_its_whole_level() -> None:
    known = build_parameters(PROFILES["openffboard"].truths())
    assert parse_parameters(format_parameters(known), "f") == known
    one = replace(known.force, newton_to_level=((0.1, 0.0), (0.0, 0.1)), max_force_n=10.0, effects=1)
    assert replace(known, force=one).force.max_force_n == 10.0
    skew = replace(one, newton_to_level=((0.1, 0.08), (0.08, 0.1)), max_force_n=7.0)
    assert replace(known, force=replace(skew, effects=2))
    with pytest.raises(ConfigurationError, match=r"force\.max_force_n = 7: .* must be at most 5\.5"):
        replace(known, force=skew)
    before = format_parameters(known).replace("effects = 2\n", "")
    assert parse_parameters(before, "f") == known
