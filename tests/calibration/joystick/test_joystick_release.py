"""The release of a force that nobody renews: it is timed, and a stick that goes on pushing is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.joystick.release import time_release
from calibration.joystick.response import Response
from calibration.joystick.stick import RawStick
from devices.emulated.joystick import EmulatedPidJoystick, EmulatedStickSettings
from devices.emulators.pid.profiles.known import PROFILES
from devices.joystick.parameters import format_parameters, parse_parameters
from haptics.errors import ConfigurationError
from tests.calibration.benches import Table, bench, left_alone, moved_here, truth_of

STICKS = tuple(PROFILES)


@pytest.fixture
def endless() -> Iterator[str]:
    """A stick that takes every duration for: for ever."""
    with pytest.MonkeyPatch.context() as patch:
        ever = frozenset(range(0x10000))
        patch.setitem(PROFILES, "endless", dataclasses.replace(PROFILES["openffboard"], endless=ever))
        yield "endless"


def response_of(table: Table) -> Response:
    truth = truth_of(table.stick)
    level = np.array(truth.force.newton_to_level)
    newtons = np.array(((1.0 / level[0, 0], 0.0), (0.0, 0.0))) if truth.axes.rim_radius_m else np.linalg.inv(level)
    mass, damping = truth.handle.moving_mass_kg, truth.handle.damping_ns_per_m
    assert mass is not None and damping is not None
    return Response(newtons / mass, damping / mass, 0.0, 0.0, 0.0, 0.0, ())


def timed(profile: str, **settings: Any) -> tuple[float, Table]:
    table = bench(profile)
    own = EmulatedStickSettings(emulated=True, **settings)
    known = truth_of(table.stick)
    with (
        moved_here(table),
        RawStick(own, table.backend, wheel=bool(known.axes.rim_radius_m)) as stick,
    ):
        return time_release(stick, known.axes, response_of(table), table.person, 0.3), table


@pytest.mark.parametrize("profile", STICKS)
@pytest.mark.parametrize("duration", [0.2, 0.12])
def test_the_time_is_that_of_the_stick(profile: str, duration: float) -> None:
    lasted, table = timed(profile, force_duration=duration, keep_alive=0.05)
    assert lasted == pytest.approx(duration, abs=0.012)
    assert left_alone(table.stick)


def test_nothing_renews_the_force_meanwhile() -> None:
    _, table = timed("openffboard")
    log = list(table.stick.firmware.log)
    first = next(i for i, (_, kind, fields) in enumerate(log) if kind == "constant" and fields["magnitude"])
    sent = [(kind, fields.get("magnitude")) for _, kind, fields in log[first : first + 3]]
    assert sent[1:] == [("operation", None), ("constant", 0)], "the force, its start, and the end of it"
    apart = log[first + 2][0] - log[first + 1][0]
    assert apart >= 490, "ms"


def test_a_stick_that_goes_on_pushing_is_refused_and_left_without_force(endless: str) -> None:
    table = bench(endless)
    known = truth_of(table.stick)
    with moved_here(table), pytest.raises(ConfigurationError, match=r"does not end a force by itself.*not supported"):
        with RawStick(EmulatedStickSettings(emulated=True), table.backend) as stick:
            time_release(stick, known.axes, response_of(table), table.person, 0.3)
    assert left_alone(table.stick)
    assert (np.abs(table.stick.handle) < known.axes.workspace_max_m).all(), "it was ended long before the stop"


def test_what_was_measured_is_in_the_file_and_the_data_sheet(tmp_path: Path) -> None:
    known = truth_of(bench("openffboard").stick)
    text = format_parameters(dataclasses.replace(known, force=dataclasses.replace(known.force, release_s=0.23)))
    assert parse_parameters(text, "f").force.release_s == 0.23
    path = tmp_path / "stick.toml"
    for line, watchdog in (("release_s = 0.23\n", 0.23), ("", 0.2), ("release_s = 0.05\n", 0.2)):
        path.write_text(text.replace("release_s = 0.23\n", line))
        settings = {"emulated": True, "parameters": str(path)}
        assert EmulatedPidJoystick(settings).spec.watchdog == watchdog
    with pytest.raises(ConfigurationError, match=r"force\.release_s = -1\.0: must be a number of at least 0 s"):
        parse_parameters(text.replace("0.23", "-1.0"), "f")
