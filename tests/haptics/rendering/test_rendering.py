"""A rendering between envelope and device: what else the device may do, and from where an element goes on."""

from __future__ import annotations

import numpy as np
import pytest

from haptics import Coulomb, MasslessImpedance
from haptics.records import Permission, Status
from tests.haptics.drives import BAD, Begin, Drive, sample, stiff
from tests.haptics.strategies import LAWS, make

# --- friction compensation ---------------------------------------------------------------------------------------


def wound_up(begin: Begin, **tighter: float) -> Drive:
    """Return a drive whose soft spring, stretched along x, drives the handle back with 5 N."""
    drive = begin(MasslessImpedance(Coulomb(8.0), 100.0, 0.0), {"max_speed": 0.5, **tighter}, max_energy=10.0)
    for k in range(500):
        drive(sample(x=1e-4 * k, vx=0.1))
    assert drive.rendering.assistance == 1.0
    return drive


def test_compensation_comes_up_with_the_output(begin: Begin) -> None:
    drive = begin(stiff())
    found = []
    for _ in range(120):
        drive(sample(vx=0.2))
        found.append(drive.rendering.assistance)
    np.testing.assert_allclose(found, np.minimum(np.arange(1, 121) / 100.0, 1.0))


@pytest.mark.parametrize(("speed", "allowed"), [(0.2, 1.0), (0.44, 1.0), (0.46, 0.0), (0.6, 0.0)])
def test_near_the_speed_limit_compensation_does_not_drive_on(begin: Begin, speed: float, allowed: float) -> None:
    drive = wound_up(begin)
    row = drive(sample(x=0.05, vx=-speed))
    assert bool(row["status"] & Status.SPEED) == (allowed == 0.0)
    assert drive.rendering.assistance == allowed


def test_beyond_the_energy_limit_compensation_does_not_drive_on(begin: Begin) -> None:
    drive = wound_up(begin, max_energy=1e-3)
    for k in range(30):  # driven back by the spring, which the element is not told
        drive(sample(x=0.05 - 1e-3 * k))
    row = drive(sample(x=0.02, vx=-0.05))
    assert row["status"] & (Status.ENERGY | Status.SPEED) == Status.ENERGY
    assert drive.rendering.assistance == 0.0
    drive(sample(x=0.02, vx=0.05))
    assert drive.rendering.assistance == 1.0


def test_without_a_usable_sample_or_a_held_dead_man_compensation_goes(begin: Begin) -> None:
    drive = wound_up(begin)
    for expected in (0.5, 0.0, 0.0):
        drive(sample(BAD))
        assert drive.rendering.assistance == expected
    drive = wound_up(begin)
    found = []
    for _ in range(10):
        drive(sample(x=0.05), permission=int(Permission.RELEASED))
        found.append(drive.rendering.assistance)
    np.testing.assert_allclose(found, np.maximum(1.0 - np.arange(1, 11) / 8.0, 0.0))


# --- after a pause -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("skipped", "lets_go"), [(0, False), (19, False), (20, True), (30, True), (39, True)])
def test_after_a_stall_in_which_the_device_let_go_the_output_comes_up_anew(
    begin: Begin, skipped: int, lets_go: bool
) -> None:
    drive = begin(stiff(), watchdog=0.0205)
    for _ in range(150):
        drive(sample(vx=0.2))
    row = drive(sample(vx=0.2), skipped=skipped)
    assert np.hypot(*row["command"]) == pytest.approx(0.04 if lets_go else 4.0)
    assert bool(row["status"] & Status.FADE) == lets_go
    assert drive.force(sample(vx=0.2)) == pytest.approx(0.08 if lets_go else 4.0)


@pytest.mark.parametrize("gap", [1, 5])
def test_after_bad_samples_a_mass_goes_on_with_the_handle(begin: Begin, gap: int) -> None:
    """A mass at rest would be pulled along through its coupling: the hand would feel a blow."""
    drive = begin(make("B", LAWS["coulomb"]), fade_in=0.0)
    for _ in range(300):
        before = drive(sample(vx=0.3))
    for _ in range(gap):
        drive(sample(vx=BAD))
    after = [drive(sample(vx=0.3)) for _ in range(20)]
    for row in after:
        np.testing.assert_allclose(row["command_unlimited"], before["command_unlimited"], rtol=1e-3)
