"""Samples that are missing where a fit or the next motion needs them end in words, or the fit does without them."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from calibration.autotune import Autotune
from calibration.autotune.answers import Plant, Push
from calibration.autotune.boundary import find_boundary
from calibration.autotune.plant import fit_plant, whole
from calibration.autotune.pushing import Gains, Pusher, cut, span, step_of
from calibration.motions.course import known_rows
from devices import create_device
from haptics.design import Handle
from haptics.errors import ConfigurationError, DeviceFault
from haptics.records import NEUTRAL, Rows, Status
from haptics.rendering.motion import Motion

PERIOD = 1e-3


def pusher() -> Pusher:
    return Pusher(create_device("virtual-joystick", {}).spec, Autotune(axes="x", pushes=16), PERIOD)


def answered(motion: Motion, spoil: Callable[[Rows], Rows]) -> Rows:
    """Return the rows of a motion on a handle of 0.2 kg that has no friction, its force given whole at once."""
    length = len(motion.table)
    rows = np.repeat(NEUTRAL, length + 3)
    rows["tick"] = np.arange(length + 3)
    force = np.append(motion.table[:, 4], (0.0, 0.0, 0.0))
    rows["command"][:, 0] = force
    rows["position"][1:, 0] = np.cumsum(np.cumsum(force[:-1]) * PERIOD / 0.2) * PERIOD
    rows["position"] = 1e-5 * np.round(rows["position"] / 1e-5)
    rows["sticking"][length - 1 :] = 1
    return spoil(rows)


def ending_in_nothing(rows: Rows) -> Rows:
    """The last samples are no numbers: the motion was at its end already."""
    rows["position"][-2:], rows["status"][-2:] = math.nan, Status.NOT_FINITE
    return rows


def test_ticks_without_a_sample_have_no_place() -> None:
    motion = pusher().move(np.zeros((200, 6)))
    rows = answered(motion, ending_in_nothing)
    (push,) = cut(rows, [0], 200, 0, PERIOD)
    assert np.isfinite(push.position).all() and len(push.position) == 200
    rows["status"][50:60], rows["position"][50:60] = Status.IMPLAUSIBLE, 9.0
    (push,) = cut(rows, [0], 200, 0, PERIOD)
    assert np.flatnonzero(np.isnan(push.position)).tolist() == list(range(50, 60))
    assert span(rows, 0) == 0.0
    assert step_of([rows], 0) == (0.0, math.inf)


def test_pushes_of_which_nothing_is_known_are_told_in_words() -> None:
    seen, unseen = (Push(np.zeros(40), np.full(40, value), 0) for value in (0.0, math.nan))
    assert whole([seen, unseen]) == [seen]
    with pytest.raises(ConfigurationError, match="1 of 2 pushes were recorded whole, 8 are needed"):
        whole([seen, unseen], 8)
    with pytest.raises(ConfigurationError, match="0 of 1 pushes"):
        fit_plant([unseen], PERIOD, 0.2, 1e-5)


def test_one_push_alone_can_be_fitted() -> None:
    force = np.repeat((0.0, 1.0, -1.0, 0.0), 30)
    position = np.append(0.0, np.cumsum(np.cumsum(force[:-1]) * PERIOD / 0.2) * PERIOD)
    fit = fit_plant([Push(force, position, 0)], PERIOD, 0.3, 1e-6, (0.0,))
    assert fit.plant.mass == pytest.approx(0.2, rel=0.1)


def test_a_handle_that_nobody_sees_is_told_in_words() -> None:
    rows = np.repeat(NEUTRAL, 10)
    rows["status"] = Status.NOT_FINITE
    with pytest.raises(DeviceFault, match="none of 10 samples could be used"):
        known_rows(rows)


def test_an_axis_that_no_stiffness_should_hold_has_no_boundary() -> None:
    pushing, plant = pusher(), Plant(0.05, 0.0, 0.0, 0.0, 0.02)
    handle = Handle(plant.mass, plant.damping, plant.delay)
    rows = np.repeat(NEUTRAL, 10)
    search = find_boundary(pushing, plant, handle, "x", 50.0, rows)
    motion = next(search)
    assert motion.label == "centre"
    with pytest.raises(StopIteration) as ended:
        search.send(rows)
    assert ended.value.value.stiffness is None
    assert "no stiffness should hold this axis at 50 N s/m" in ended.value.value.doubt


def test_gains_are_finite_without_an_encoder_step() -> None:
    gains = Gains.of(Plant(0.2), 0.0, pusher().spec, PERIOD)
    assert math.isfinite(gains.stiffness) and math.isfinite(gains.brake)
