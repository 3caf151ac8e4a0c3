"""What the reproductions of Weigand et al. 2020 rest on; their numbers are checked with all others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from apps.reproduce import weigand, weigand_fig3, weigand_fig7, weigand_table1
from devices.arm.flatness.control import FeedForwardServo


def test_motion_turns_back_without_a_jump_and_ends_where_it_began() -> None:
    motion = weigand.motion()
    middle = len(motion) // 2
    assert motion[middle, 0] == pytest.approx(math.radians(weigand.TURN))
    np.testing.assert_allclose(motion[[0, -1], :4], 0.0, atol=1e-9)
    steps = np.abs(np.diff(motion, axis=0)).max(axis=0)
    assert (steps < 1e-3 * np.abs(motion).max(axis=0)).all()  # in none of the five columns


def test_reference_of_a_run_is_what_the_link_would_need() -> None:
    run = weigand.run(weigand.FLAT)
    link = weigand.motion()[::2]
    needed = weigand.INERTIA * link[:, 2] + weigand.JOINT.friction(link[:, 1])
    np.testing.assert_allclose(run.reference_gear_torque, needed, atol=1e-9)
    np.testing.assert_allclose(run.error, link[:, 0] - run.position, atol=0.0)


def test_law_with_slack_is_as_stiff_at_rest_as_the_other() -> None:
    slack, knee = (law.torque_derivatives(0.0)[1] for law in (weigand.SLACK, weigand.JOINT.stiffness))
    assert slack == pytest.approx(knee, rel=0.1)


def test_printed_pieces_are_wrong_beyond_the_play_only() -> None:
    twist = np.linspace(0.0, weigand.BACKLASH, 20)
    np.testing.assert_array_equal(weigand_fig3.printed_pieces(twist), weigand_fig3.PIECES.torque(twist))
    assert weigand_fig3.printed_pieces(np.array([1e-3])) != pytest.approx(weigand_fig3.PIECES.torque(1e-3), rel=0.1)


def test_feedback_is_compared_with_the_same_feed_forward_without_it() -> None:
    row = next(row for row in weigand_fig7.reproduce().rows if "rigid, conventional feedback" in row.what)
    with_it, without = (
        weigand.worst(weigand.run(FeedForwardServo("rigid", feedback), circumstances=weigand.HELD))
        for feedback in ("conventional", "none")
    )
    assert row.ours == pytest.approx(with_it / without)
    assert row.ours < 0.5  # it improves


def test_ranking_is_reported_on_both_sides_of_the_right_inertia() -> None:
    ratios = [row.ours for row in weigand_table1.reproduce().rows if "real inertia 1 %" in row.what]
    assert len(ratios) == 2
    assert ratios[0] < 1.0 < ratios[1]


def test_what_only_divides_the_paper_s_own_table_is_no_number_met() -> None:
    rows = [row for row in weigand_table1.reproduce().rows if row.what.startswith("text against table")]
    assert len(rows) == 5
    assert all(row.met is None for row in rows)
