"""Long computations for the topic of tests/calibration/motions/test_handle_motion.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibration.motions import rows_of
from calibration.motions.axis_recordings import recorded_axes
from calibration.motions.excitation import Excitation
from calibration.motions.trials import HANDLES, Handle, fits_of
from calibration.motions.trials import held as how_often
from haptics.recording.recording import Recording
from tests.calibration.motions.test_handle_motion import (
    PERIOD,
    folder,  # noqa: F401
    held,
    own_file,  # noqa: F401
)
from tests.devices.felt import ToAndFro, feel


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("speed", [0.03, 0.1])
def test_felt_friction_falls_by_more_than_80_percent(own_file: str, axis: int, speed: float) -> None:
    hand = ToAndFro(axis, speed)
    ticks = round(8.0 * hand.reach / speed / PERIOD)
    own, left = (feel(device, device, hand, ticks) for device in (held("", hand), held(own_file, hand)))
    assert left.work < 0.2 * own.work
    assert left.work > 0.0  # it is still friction
    assert max(left.forward, left.backward) < 0.2 * max(own.forward, own.backward)


def test_forces_come_at_the_time_at_which_they_act(folder: Path) -> None:
    """Half a millisecond of delay, and half a period since a force holds for one."""
    rows = dict(rows_of(Recording(folder)))["x 1"]
    effort = recorded_axes(folder)["x"][0].effort
    lags = np.arange(4)
    misfits = [np.sum((rows["command"][10 - lag : -10 - lag, 0] + effort[10:-10]) ** 2) for lag in lags]
    assert lags[int(np.argmin(misfits))] == 1


@pytest.mark.parametrize("handle", HANDLES, ids=lambda handle: handle.model)
def test_the_noise_of_the_positions_in_the_forces_spoils_nothing(handle: Handle) -> None:
    """A delay that is taken for that of the noise makes the viscosity 1 % too large."""
    short = Excitation(speeds=5, rounds=2, strokes=1, stroke_time=0.5)
    for fit in fits_of(handle, 0, short):
        assert fit.values["viscosity"] == pytest.approx(1.0, rel=0.003)
        assert fit.values["inertia"] == pytest.approx(0.2, rel=0.01)
        assert fit.values.get("coulomb", handle.coulomb) == pytest.approx(handle.coulomb, rel=0.001)


@pytest.mark.parametrize("handle", HANDLES, ids=lambda handle: handle.model)
def test_intervals_hold_the_truth(handle: Handle) -> None:
    fits = [fit for seed in range(4) for fit in fits_of(handle, seed)]
    assert min(how_often(handle, fits).values()) >= 0.8
