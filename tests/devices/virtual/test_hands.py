"""The touring hand, its tremor, and how hands are chosen by name."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.common.workspace import Workspace
from devices.virtual.hands.registry import HANDS, hand_settings, make_hand, parse_hand
from haptics.errors import ConfigurationError, HapticError

WORKSPACE = Workspace((-0.1, -0.08), (0.1, 0.08))
ORIGIN = np.zeros(2)


def make(name="minimum-jerk", seed=0, workspace=WORKSPACE, **changes):
    return make_hand({"name": name, **changes}, seed, workspace)


def samples(hand, times):
    return np.array([hand.sample(time, ORIGIN) for time in times])


class TestMinimumJerk:
    def test_strokes_begin_and_end_at_rest_with_no_acceleration(self):
        hand, small = make(), 1e-4
        strokes = [phase for phase in hand.phases if phase.origin != phase.goal]
        assert len(strokes) == 5
        for phase in strokes:
            for end, inside in ((0.0, small), (phase.duration, phase.duration - small)):
                moved = math.dist(phase.at(end), phase.at(inside))
                # A speed v or an acceleration a at the end would show as v t or a t^2 / 2; minimum jerk goes with t^3.
                assert moved < 15.0 * math.dist(phase.origin, phase.goal) * (small / phase.duration) ** 3 * math.pi

    def test_stroke_is_the_polynomial_of_flash_and_hogan(self):
        phase = next(phase for phase in make().phases if phase.label == "a-b")
        for u in np.linspace(0.0, 1.0, 11):
            s = 10.0 * u**3 - 15.0 * u**4 + 6.0 * u**5
            expected = np.array(phase.origin) + s * (np.array(phase.goal) - phase.origin)
            np.testing.assert_allclose(phase.at(u * phase.duration), expected, atol=1e-15)

    def test_target_is_continuous_over_the_whole_loop_and_beyond(self):
        hand = make(tremor=0.0)
        values = samples(hand, np.arange(0.0, 2.2 * hand.length, 1e-3))
        steps = np.abs(np.diff(values, axis=0))
        assert np.hypot(steps[:, 0], steps[:, 1]).max() <= 0.15e-3 * 1.0001
        assert steps[:, 2:4].max() < 0.03  # N per ms, of a force that swings with 1.6 N at up to 2.3 Hz
        assert steps[:, 4].max() < 0.6 * 1.5 / 0.25 * 1e-3 * 1.01

    def test_target_repeats_itself(self):
        hand = make()
        np.testing.assert_allclose(
            samples(hand, np.arange(0.0, 1.0, 0.01))[:, :2],
            samples(hand, hand.length + np.arange(0.0, 1.0, 0.01))[:, :2],
            atol=1e-12,
        )

    @pytest.mark.parametrize("speed", [0.05, 0.15, 0.3])
    def test_peak_speed_is_the_setting(self, speed):
        hand = make(speed=speed)
        for phase in hand.phases:
            if phase.origin != phase.goal:
                times = np.linspace(0.0, phase.duration, 2001)
                path = np.array([phase.at(time) for time in times])
                peak = np.hypot(*np.diff(path, axis=0).T).max() / (times[1] - times[0])
                assert peak == pytest.approx(speed, rel=1e-3)

    def test_default_tour_has_strokes_a_curve_and_rests(self):
        hand = make()
        assert list(hand.points) == ["a", "b", "c", "d", "e"]
        assert [phase.label for phase in hand.phases] == "a a-b b b-c c c-d d d-e e e-a".split()
        assert [phase.label for phase in hand.phases if phase.rest] == ["b", "c"]
        (curve,) = (phase for phase in hand.phases if phase.centre)
        assert curve.label == "d-e"
        radii = [math.dist(curve.at(u * curve.duration), curve.centre) for u in np.linspace(0.0, 1.0, 50)]
        np.testing.assert_allclose(radii, 0.045, rtol=1e-12)
        np.testing.assert_allclose(curve.at(curve.duration), hand.points["e"], atol=1e-15)
        assert curve.at(curve.duration / 2.0)[1] > curve.origin[1]

    def test_phases_follow_each_other_without_gap(self):
        hand = make()
        for before, after in zip(hand.phases, (*hand.phases[1:], hand.phases[0]), strict=True):
            assert before.goal == after.origin
            assert (before.start + before.duration) % hand.length == pytest.approx(after.start, abs=1e-12)
        for phase in hand.phases:
            assert hand.phase_at(3.0 * hand.length + phase.start + 0.01) is phase

    @given(
        width=st.floats(0.01, 1.0),
        height=st.floats(0.01, 1.0),
        x=st.floats(-0.5, 0.5),
        y=st.floats(-0.5, 0.5),
    )
    def test_default_tour_stays_inside_any_workspace(self, width, height, x, y):
        workspace = Workspace((x - width, y - height), (x + width, y + height))
        hand = make(workspace=workspace)
        for time in np.linspace(0.0, hand.length, 100):
            sample = hand.sample(time, ORIGIN)
            assert workspace.contains(sample.x, sample.y)

    def test_hand_relaxes_and_fluctuates_at_rest_only(self):
        hand = make(tremor=0.0)
        times = np.arange(0.0, 3.0 * hand.length, 1e-3)
        values = samples(hand, times)
        resting = np.array([hand.phase_at(time).rest for time in times])
        force = np.hypot(values[:, 2], values[:, 3])
        assert (force[~resting] == 0.0).all()
        assert (values[~resting, 4] == 1.0).all()
        assert 0.5 < force[resting].max() <= 1.6
        assert values[resting, 4].min() == pytest.approx(0.4)

    def test_seed_decides_the_forces_but_not_the_path(self):
        times = np.arange(0.0, 3.0, 1e-2)
        one, same, other = (samples(make(seed=seed), times) for seed in (1, 1, 2))
        np.testing.assert_array_equal(one, same)
        np.testing.assert_array_equal(one[:, :2], other[:, :2])
        assert (one[:, 2:4] != other[:, 2:4]).any()

    def test_own_points_are_visited_in_order_with_a_rest_at_each(self):
        hand = make(points=[[0.0, 0.0], [0.05, 0], [0.05, -0.05]], rest=0.5)
        assert [phase.label for phase in hand.phases] == ["a", "a-b", "b", "b-c", "c", "c-a"]
        assert all(phase.rest == (phase.origin == phase.goal) for phase in hand.phases)
        assert hand.points["c"] == (0.05, -0.05)
        assert hand.start == (0.0, 0.0)

    def test_own_points_can_have_curves_and_choose_where_to_rest(self):
        hand = make(points=[[0.0, 0.0], [0.05, 0], [0.05, 0.06]], curves=["b-c"], rests=["b"], rest=0.5, pause=0.1)
        assert [phase.label for phase in hand.phases if phase.rest] == ["b"]
        assert [phase.duration for phase in hand.phases if phase.label in "abc"] == [0.1, 0.5, 0.1]
        (curve,) = (phase for phase in hand.phases if phase.centre)
        assert curve.label == "b-c"
        np.testing.assert_allclose(curve.at(curve.duration / 2.0), (0.08, 0.03), atol=1e-12)

    def test_default_tour_can_be_bent_and_rest_elsewhere(self):
        hand = make(curves=["c-d"], rests=["e"])
        assert [phase.label for phase in hand.phases if phase.centre] == ["c-d"]
        assert [phase.label for phase in hand.phases if phase.rest] == ["e"]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"curves": ["a-c"]}, r"hand.curves has 'a-c': must be one of a-b, b-c, c-d, d-e, e-a"),
            ({"rests": ["f"]}, r"hand.rests has 'f': must be one of a, b, c, d, e"),
            ({"rests": "b"}, r"hand.rests = 'b': must be a list of words"),
            ({"curves": [1]}, r"hand.curves = \[1\]: must be a list of words"),
            (
                {"points": [[0.09, -0.05], [0.09, 0.05]], "curves": ["a-b"]},
                r"hand.curves: the half circle a-b leaves the workspace, .*, at \(0\.1",
            ),
            ({"points": [[0.0, 0.0], [0.3, 0.0]]}, r"hand.points\[1\] = \[0\.3, 0\] m: must be inside"),
            ({"points": [[0.0, 0.0], [0.0]]}, r"hand.points\[1\] = \[0\.0\]: must be 2 finite numbers"),
            ({"points": [[0.0, math.nan]]}, r"points\[0\]"),
            ({"points": "a b"}, r"hand.points = 'a b': must be a list"),
            ({"points": [[0.0, 0.0]]}, r"one point"),
            ({"points": [[0.0, 0.0], [0.0, 0.0]], "rest": 0.0}, r"nothing to do"),
            ({"speed": 2.0}, r"hand.speed = 2\.0: .*at most 1 m/s"),
        ],
    )
    def test_wrong_setting_is_named(self, changes, message):
        with pytest.raises(ConfigurationError, match=message):
            make(**changes)


def tremor(amplitude, times, seed=0):
    """Return the force of a hand that holds still and trembles, (n, 2) [N]."""
    rests = {"rest": 60.0, "rest_force": 0.0}
    return samples(make(points=[[0.0, 0.0], [0.0, 0.0]], tremor=amplitude, seed=seed, **rests), times)[:, 2:4]


class TestTremor:
    def test_has_the_amplitude_that_was_asked_for(self):
        forces = tremor(0.2, np.arange(0.0, 100.0, 1e-2), seed=3)
        assert math.sqrt((forces**2).sum(axis=1).mean()) == pytest.approx(0.2, rel=0.02)

    def test_lies_between_8_and_12_hz(self):
        period = 1e-2
        forces = tremor(1.0, np.arange(0.0, 50.0, period), seed=4)
        window = np.hanning(len(forces))[:, None]
        power = (np.abs(np.fft.rfft(forces * window, axis=0)) ** 2).sum(axis=1)
        frequency = np.fft.rfftfreq(len(forces), period)
        band = (frequency > 7.9) & (frequency < 12.1)
        assert power[band].sum() / power.sum() > 0.999

    def test_none_is_none(self):
        assert not tremor(0.0, [0.123], seed=1).any()


class TestChoosing:
    @pytest.mark.parametrize("name", HANDS)
    def test_name_is_a_name(self, name):
        assert hand_settings(name) == {"name": name}

    def test_file_is_a_recording(self, tmp_path):
        path = tmp_path / "path.csv"
        path.write_text("")
        assert hand_settings(str(path)) == {"name": "recorded", "file": str(path)}

    @pytest.mark.parametrize("text", ["minimum-jerc", "no/such/file.csv", "", "x\0y", "a" * 5000])
    def test_anything_else_is_refused_with_what_is_allowed(self, text):
        with pytest.raises(ConfigurationError, match=r"minimum-jerk.*recorded.*there is no file"):
            hand_settings(text)

    def test_default_is_the_tour(self):
        assert parse_hand(None) == parse_hand({"name": "minimum-jerk"})

    @settings(max_examples=50)
    @given(
        name=st.sampled_from([*HANDS, "foot"]),
        table=st.dictionaries(
            st.sampled_from(
                "stiffness damping tremor points speed pause rest rest_force rest_grip script repeat file scale "
                "centre target smoothing colour".split()
            ),
            st.one_of(
                st.none(),
                st.booleans(),
                st.integers(-(10**6), 10**6),
                st.floats(),
                st.text(max_size=5),
                st.lists(st.lists(st.floats(), max_size=4), max_size=4),
            ),
            max_size=4,
        ),
    )
    def test_any_table_gives_a_hand_or_a_plain_error(self, name, table):
        try:
            hand = make_hand({"name": name, **table}, 0, WORKSPACE)
        except HapticError as error:
            assert isinstance(error, ConfigurationError)
            assert str(error)
            return
        values = samples(hand, np.linspace(0.0, 20.0, 50))
        assert np.isfinite(values).all()
