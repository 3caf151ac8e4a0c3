"""Hands that are told what to do: a script of forces, and the mouse."""

import math

import numpy as np
import pytest

from devices.common.workspace import Workspace
from devices.virtual.hands.registry import HAND_TARGET, make_hand
from haptics.errors import ConfigurationError
from haptics.servo.lane import Lane

WORKSPACE = Workspace((-0.1, -0.08), (0.1, 0.08))
ORIGIN = np.zeros(2)


def make(name, **changes):
    return make_hand({"name": name, **changes}, 0, WORKSPACE)


def samples(hand, times):
    return np.array([hand.sample(time, ORIGIN) for time in times])


class TestScriptedForce:
    SCRIPT = ((1.0, 0.0, 2.0), (2.0, 4.0, 2.0), (4.0, 4.0, -2.0))

    @pytest.mark.parametrize(
        ("time", "force"),
        [
            (0.0, (0.0, 2.0)),
            (1.0, (0.0, 2.0)),
            (1.25, (1.0, 2.0)),
            (3.0, (4.0, 0.0)),
            (4.0, (4.0, -2.0)),
            (99.0, (4.0, -2.0)),
        ],
    )
    def test_is_linear_between_rows_and_held_outside(self, time, force):
        sample = make("scripted-force", script=self.SCRIPT).sample(time, ORIGIN)
        assert (sample.force_x, sample.force_y) == pytest.approx(force)
        assert sample.grip == 0.0

    def test_repeats_if_asked_to(self):
        hand = make("scripted-force", script=self.SCRIPT, repeat=5.0)
        np.testing.assert_allclose(samples(hand, [11.25, 13.0]), samples(hand, [1.25, 3.0]))

    def test_can_be_read_from_a_file(self, tmp_path):
        path = tmp_path / "push.csv"
        path.write_text("# made by hand\ntime,fx,fy\n0,0,0\n1,2,-4\n")
        sample = make("scripted-force", file=str(path)).sample(0.5, ORIGIN)
        assert (sample.force_x, sample.force_y) == (1.0, -2.0)

    def test_has_no_grip(self):
        hand = make("scripted-force", script=self.SCRIPT)
        assert (hand.stiffness, hand.damping) == (0.0, 0.0)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({}, r"either hand.script.* or hand.file"),
            ({"script": [[0.0, 1.0]]}, r"hand.script\[0\] = \[0\.0, 1\.0\]: must be 3 finite numbers"),
            ({"script": [[0, 0, 0], [0, 1, 1]]}, r"time 0 s does not come after 0 s"),
            ({"script": [[0.0, 101.0, 0.0]]}, r"at most 100 N"),
            ({"script": [[0.0, 1.0, 0.0]], "file": "x.csv"}, r"either"),
            ({"file": "no-such-file.csv"}, r"no-such-file\.csv: there is no such file"),
        ],
    )
    def test_wrong_setting_is_named(self, changes, message):
        with pytest.raises(ConfigurationError, match=message):
            make("scripted-force", **changes)

    def test_file_without_forces_is_named(self, tmp_path):
        path = tmp_path / "path.csv"
        path.write_text("t,x,y\n0,0,0\n1,2,-4\n")
        with pytest.raises(ConfigurationError, match=r"path\.csv: there are no columns for the force.*'x'"):
            make("scripted-force", file=str(path))


class TestMouse:
    @pytest.fixture
    def lane(self, tmp_path):
        return Lane(tmp_path / "target", HAND_TARGET, create=True)

    @staticmethod
    def point(lane, x, y, engaged=1, buttons=0, ease=0.0):
        value = np.zeros(1, HAND_TARGET)
        value["ease"] = ease
        value["position"], value["engaged"], value["buttons"] = (x, y), engaged, buttons
        lane.publish(value[0])

    def test_without_the_live_view_it_is_refused(self):
        with pytest.raises(ConfigurationError, match="needs the live view"):
            make("mouse")

    def test_missing_file_is_refused(self, tmp_path):
        with pytest.raises(ConfigurationError, match="target"):
            make("mouse", target=str(tmp_path / "target"))

    def test_floats_along_with_the_handle_until_it_is_engaged(self, lane):
        hand = make("mouse", target=str(lane.path))
        sample = hand.sample(0.1, np.array((0.03, -0.02)))
        assert sample == (0.03, -0.02, 0.0, 0.0, 0.0, 0)

    @pytest.mark.parametrize(("ease", "grip"), [(0.0, 1.0), (0.25, 0.75), (1.0, 0.0), (-3.0, 1.0), (np.nan, 1.0)])
    def test_holds_as_firmly_as_a_pen_is_pressed(self, lane, ease, grip):
        hand = make("mouse", target=str(lane.path))
        self.point(lane, 0.08, 0.0, ease=ease)
        assert hand.sample(0.1, np.zeros(2)).grip == grip

    def test_takes_hold_where_the_handle_is(self, lane):
        hand = make("mouse", target=str(lane.path))
        handle = np.array((0.03, -0.02))
        hand.sample(0.1, handle)
        self.point(lane, 0.08, 0.0)
        sample = hand.sample(0.101, handle)
        assert sample.grip == 1.0
        assert math.dist((sample.x, sample.y), handle) < 5e-5

    @pytest.mark.parametrize("period", [1e-3, 1e-2])
    def test_follows_as_a_critically_damped_filter(self, lane, period):
        hand = make("mouse", target=str(lane.path), smoothing=0.03)
        hand.sample(0.0, ORIGIN)
        self.point(lane, 0.06, -0.04)
        for k in range(1, round(0.3 / period) + 1):
            sample = hand.sample(k * period, ORIGIN)
            x = k * period / 0.03
            assert sample.x == pytest.approx(0.06 * (1.0 - (1.0 + x) * math.exp(-x)), abs=1e-12)
            assert sample.y == pytest.approx(-0.04 * (1.0 - (1.0 + x) * math.exp(-x)), abs=1e-12)

    def test_lets_go(self, lane):
        hand = make("mouse", target=str(lane.path))
        self.point(lane, 0.06, 0.0)
        assert hand.sample(0.001, ORIGIN).grip == 1.0
        self.point(lane, 0.06, 0.0, engaged=0)
        assert hand.sample(0.002, ORIGIN).grip == 0.0

    def test_stays_inside_the_workspace(self, lane):
        hand = make("mouse", target=str(lane.path))
        hand.sample(0.0, ORIGIN)
        self.point(lane, 5.0, -5.0)
        sample = hand.sample(10.0, ORIGIN)
        assert (sample.x, sample.y) == pytest.approx(WORKSPACE.upper[:1] + WORKSPACE.lower[1:])

    def test_mouse_that_is_nowhere_lets_go(self, lane):
        hand = make("mouse", target=str(lane.path))
        self.point(lane, math.nan, 0.0)
        assert hand.sample(0.001, ORIGIN) == (0.0, 0.0, 0.0, 0.0, 0.0, 0)

    def test_holds_the_buttons_that_it_is_told_with_or_without_the_handle(self, lane):
        hand = make("mouse", target=str(lane.path), presses=["3@1+0.5"])
        for engaged, buttons in ((0, 0b10), (1, 0b110), (1, 0)):
            self.point(lane, 0.01, 0.0, engaged, buttons)
            assert hand.sample(0.5, ORIGIN).buttons == buttons
            assert hand.sample(1.2, ORIGIN).buttons == buttons | 0b1000
        self.point(lane, 0.01, 0.0, 1, 0b10)
        hand.sample(1.6, ORIGIN)
        lane.record["buttons"] = 0  # written, but not yet published
        assert hand.sample(1.7, ORIGIN).buttons == 0b10
        hand.restart()
        assert hand.sample(0.0, ORIGIN).buttons == 0, "it looks afresh"

    def test_restart_forgets(self, lane):
        hand = make("mouse", target=str(lane.path))
        self.point(lane, 0.06, 0.0)
        first = [hand.sample(k * 1e-3, ORIGIN) for k in range(10)]
        hand.restart()
        assert [hand.sample(k * 1e-3, ORIGIN) for k in range(10)] == first
