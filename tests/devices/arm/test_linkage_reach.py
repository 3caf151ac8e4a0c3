"""Where the reach of an arm's linkage ends, to the last digits, and what a workspace may ask of it."""

from __future__ import annotations

import numpy as np
import pytest

from devices.arm.mechanics.linkage import PlacedLinkage, SerialTwoLink
from devices.common.linkage import FiveBar
from haptics.errors import ConfigurationError

BARS = PlacedLinkage(FiveBar(0.3, 0.4, 0.4, 0.3, 0.15))


@pytest.mark.parametrize(("distance", "reached"), [(0.7, True), (0.7 + 1e-6, False), (0.1, True), (0.1 - 1e-6, False)])
@pytest.mark.parametrize("absolute", [False, True])
def test_a_micrometre_beyond_its_reach_is_out_of_it(distance: float, reached: bool, absolute: bool) -> None:
    arm = PlacedLinkage(SerialTwoLink(0.4, 0.3, absolute))
    ends = distance * np.array([[1.0, 0.0], [0.6, -0.8], [-0.28, 0.96]])
    assert (np.isfinite(arm.joints(ends)) == reached).all()


def test_a_workspace_with_a_place_for_which_it_is_not_assembled_is_not_within_reach() -> None:
    """Either arm reaches all of it: it is the elbows that would have to change places."""
    lower, upper = (0.074, -0.101), (0.076, -0.099)
    other = PlacedLinkage(FiveBar(0.3, 0.4, 0.4, 0.3, 0.15, side=-1))
    assert other.least_clearance(lower, upper) > 0.05
    assert BARS.least_clearance(lower, upper) == 0.0
    with pytest.raises(ConfigurationError, match="is not all within reach"):
        BARS.require_workspace(lower, upper, 1e-6)


@pytest.mark.parametrize("arm", [BARS, PlacedLinkage(SerialTwoLink(0.4, 0.35))], ids=["five-bar", "serial"])
def test_a_clearance_that_is_just_kept_is_kept(arm: PlacedLinkage) -> None:
    lower, upper = (0.0, 0.35), (0.15, 0.5)
    least = arm.least_clearance(lower, upper)
    assert least > 0.1
    arm.require_workspace(lower, upper, least)
    with pytest.raises(ConfigurationError, match="comes within"):
        arm.require_workspace(lower, upper, least * (1.0 + 1e-9))
