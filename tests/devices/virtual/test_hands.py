"""Hands of the virtual devices: touring, recorded, scripted, mouse; their choice and presses."""

import math
import re
from bisect import bisect_right
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import devices
from devices.common.linkage import FiveBar
from devices.common.settings import Workspace
from devices.emulators.pid.firmware import StickPlant
from devices.emulators.pid.profiles import PROFILES
from devices.virtual.hands.csv_table import read_table
from devices.virtual.hands.hand import (
    CLICK,
    MOST_BUTTONS,
    Hand,
    HandSample,
    HandSettings,
    Press,
    edges_of,
    parse_presses,
)
from devices.virtual.hands.records import place_in
from devices.virtual.hands.registry import HAND_TARGET, HANDS, hand_settings, make_hand, parse_hand
from haptics.clock import Clock
from haptics.device import DEAD_MAN_BUTTON
from haptics.errors import ConfigurationError, HapticError
from haptics.shared import Mailbox
from tests.system.devices.virtual.test_compiled_hands import hand_table

WORKSPACE = Workspace((-0.1, -0.08), (0.1, 0.08))
ORIGIN = np.zeros(2)
SCRIPTED = {"name": "scripted-force"}


def make(name="minimum-jerk", seed=0, workspace=WORKSPACE, **changes):
    return make_hand({"name": name, **changes}, seed, workspace)


def samples(hand, times):
    return np.array([hand.sample(time, ORIGIN) for time in times])


class TestMinimumJerk:
    def test_stroke_is_the_polynomial_of_flash_and_hogan(self):
        phase = next(phase for phase in make().phases if phase.label == "a-b")
        for u in np.linspace(0.0, 1.0, 11):
            s = 10.0 * u**3 - 15.0 * u**4 + 6.0 * u**5
            expected = np.array(phase.origin) + s * (np.array(phase.goal) - phase.origin)
            np.testing.assert_allclose(place_in(phase, u * phase.duration), expected, atol=1e-15)

    def test_target_is_continuous_over_the_whole_loop_and_beyond(self):
        hand = make(tremor=0.0)
        values = samples(hand, np.arange(0.0, 2.2 * hand.length, 1e-3))
        steps = np.abs(np.diff(values, axis=0))
        assert np.hypot(steps[:, 0], steps[:, 1]).max() <= 0.15e-3 * 1.0001
        assert steps[:, 2:4].max() < 0.03  # N per ms, of a force that swings with 1.6 N at up to 2.3 Hz
        assert steps[:, 4].max() < 0.6 * 1.5 / 0.25 * 1e-3 * 1.01

    @pytest.mark.parametrize("speed", [0.05, 0.15, 0.3])
    def test_peak_speed_is_the_setting(self, speed):
        hand = make(speed=speed)
        for phase in hand.phases:
            if phase.origin != phase.goal:
                times = np.linspace(0.0, phase.duration, 2001)
                path = np.array([place_in(phase, time) for time in times])
                peak = np.hypot(*np.diff(path, axis=0).T).max() / (times[1] - times[0])
                assert peak == pytest.approx(speed, rel=1e-3)

    @given(width=st.floats(0.01, 1.0), height=st.floats(0.01, 1.0), x=st.floats(-0.5, 0.5), y=st.floats(-0.5, 0.5))
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
        starts = [phase.start for phase in hand.phases]
        resting = np.array([hand.phases[bisect_right(starts, time % hand.length) - 1].rest for time in times])
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

    def test_own_points_can_have_curves_and_choose_where_to_rest(self):
        hand = make(points=[[0.0, 0.0], [0.05, 0], [0.05, 0.06]], curves=["b-c"], rests=["b"], rest=0.5, pause=0.1)
        assert [phase.label for phase in hand.phases if phase.rest] == ["b"]
        assert [phase.duration for phase in hand.phases if phase.label in "abc"] == [0.1, 0.5, 0.1]
        (curve,) = (phase for phase in hand.phases if phase.centre)
        assert curve.label == "b-c"
        np.testing.assert_allclose(place_in(curve, curve.duration / 2.0), (0.08, 0.03), atol=1e-12)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"curves": ["a-c"]}, r"hand.curves has 'a-c': must be one of a-b, b-c, c-d, d-e, e-a"),
            ({"rests": ["f"]}, r"hand.rests has 'f': must be one of a, b, c, d, e"),
            ({"rests": "b"}, r"hand.rests = 'b': must be a list of words"),
            (
                {"points": [[0.09, -0.05], [0.09, 0.05]], "curves": ["a-b"]},
                r"hand.curves: the half circle a-b leaves the workspace, .*, at \(0\.1",
            ),
            ({"points": [[0.0, 0.0], [0.3, 0.0]]}, r"hand.points\[1\] = \[0\.3, 0\] m: must be inside"),
            ({"points": [[0.0, 0.0], [0.0]]}, r"hand.points\[1\] = \[0\.0\]: must be 2 finite numbers"),
            ({"points": "a b"}, r"hand.points = 'a b': must be a list"),
            ({"points": [[0.0, 0.0]]}, r"one point"),
            ({"points": [[0.0, 0.0], [0.0, 0.0]], "rest": 0.0}, r"nothing to do"),
            ({"speed": 2.0}, r"hand.speed = 2\.0: .*at most 1 m/s"),
            (SCRIPTED, r"either hand.script.* or hand.file"),
            (SCRIPTED | {"script": [[0.0, 1.0]]}, r"hand.script\[0\] = \[0\.0, 1\.0\]: must be 3 finite numbers"),
            (SCRIPTED | {"script": [[0, 0, 0], [0, 1, 1]]}, r"time 0 s does not come after 0 s"),
            (SCRIPTED | {"script": [[0.0, 101.0, 0.0]]}, r"at most 100 N"),
            (SCRIPTED | {"file": "no-such-file.csv"}, r"no-such-file\.csv: there is no such file"),
        ],
    )
    def test_wrong_setting_is_named(self, changes, message):
        with pytest.raises(ConfigurationError, match=message):
            make(**changes)


def tremor(amplitude, times, seed=0):
    """Return the force of a hand that holds still and trembles, (n, 2) [N]."""
    rests = {"rest": 60.0, "rest_force": 0.0}
    return samples(make(points=[[0.0, 0.0], [0.0, 0.0]], tremor=amplitude, seed=seed, **rests), times)[:, 2:4]


def test_tremor_has_its_amplitude_and_lies_between_8_and_12_hz():
    period = 1e-2
    forces = tremor(0.2, np.arange(0.0, 100.0, period), seed=3)
    assert math.sqrt((forces**2).sum(axis=1).mean()) == pytest.approx(0.2, rel=0.02)
    window = np.hanning(len(forces))[:, None]
    power = (np.abs(np.fft.rfft(forces * window, axis=0)) ** 2).sum(axis=1)
    frequency = np.fft.rfftfreq(len(forces), period)
    band = (frequency > 7.9) & (frequency < 12.1)
    assert power[band].sum() / power.sum() > 0.999


class TestChoosing:
    def test_text_is_a_name_or_a_recording_and_the_default_is_the_tour(self, tmp_path):
        path = tmp_path / "path.csv"
        path.write_text("")
        assert hand_settings(str(path)) == {"name": "recorded", "file": str(path)}
        assert [hand_settings(name) for name in HANDS] == [{"name": name} for name in HANDS]
        assert parse_hand(None) == parse_hand({"name": "minimum-jerk"})

    @pytest.mark.parametrize("text", ["minimum-jerc", "no/such/file.csv", "", "x\0y", "a" * 5000])
    def test_other_names_are_rejected(self, text):
        with pytest.raises(ConfigurationError, match=r"minimum-jerk.*recorded.*there is no file"):
            hand_settings(text)

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
    def test_any_table_gives_a_hand_or_a_configuration_error(self, name, table):
        try:
            hand = make_hand({"name": name, **table}, 0, WORKSPACE)
        except HapticError as error:
            assert isinstance(error, ConfigurationError)
            assert str(error)
            return
        values = samples(hand, np.linspace(0.0, 20.0, 50))
        assert np.isfinite(values).all()


class TestScriptedForce:
    SCRIPT = ((1.0, 0.0, 2.0), (2.0, 4.0, 2.0), (4.0, 4.0, -2.0))

    def test_is_linear_between_rows_held_outside_and_repeats(self):
        found = samples(make("scripted-force", script=self.SCRIPT), [0.0, 1.0, 1.25, 3.0, 4.0, 99.0])
        forces = [(0.0, 2.0), (0.0, 2.0), (1.0, 2.0), (4.0, 0.0), (4.0, -2.0), (4.0, -2.0)]
        np.testing.assert_allclose(found[:, 2:4], forces, rtol=1e-6, atol=1e-12)
        assert not found[:, 4].any()
        repeated = make("scripted-force", script=self.SCRIPT, repeat=5.0)
        np.testing.assert_allclose(samples(repeated, [11.25, 13.0]), found[2:4])

    def test_can_be_read_from_a_file(self, tmp_path):
        path = tmp_path / "push.csv"
        path.write_text("# made by hand\ntime,fx,fy\n0,0,0\n1,2,-4\n")
        sample = make("scripted-force", file=str(path)).sample(0.5, ORIGIN)
        assert (sample.force_x, sample.force_y) == (1.0, -2.0)
        path.write_text("t,x,y\n0,0,0\n1,2,-4\n")
        with pytest.raises(ConfigurationError, match=r"push\.csv: there are no columns for the force.*'x'"):
            make("scripted-force", file=str(path))


class TestMouse:
    @pytest.fixture
    def lane(self, tmp_path):
        return Mailbox(tmp_path / "target", HAND_TARGET, create=True)

    @staticmethod
    def point(lane, x, y, engaged=1, buttons=0, ease=0.0):
        value = np.zeros(1, HAND_TARGET)
        value["ease"] = ease
        value["position"], value["engaged"], value["buttons"] = (x, y), engaged, buttons
        lane.publish(value[0])

    @pytest.fixture
    def hand(self, lane):
        return make("mouse", target=str(lane.path))

    def test_needs_the_live_view_and_its_file(self, tmp_path):
        with pytest.raises(ConfigurationError, match="needs the live view"):
            make("mouse")
        with pytest.raises(ConfigurationError, match="target"):
            make("mouse", target=str(tmp_path / "target"))

    def test_follows_the_handle_until_it_takes_hold_there(self, lane, hand):
        handle = np.array((0.03, -0.02))
        assert hand.sample(0.1, handle) == (0.03, -0.02, 0.0, 0.0, 0.0, 0)
        self.point(lane, 0.08, 0.0)
        sample = hand.sample(0.101, handle)
        assert sample.grip == 1.0
        assert math.dist((sample.x, sample.y), handle) < 5e-5

    @pytest.mark.parametrize(("ease", "grip"), [(0.0, 1.0), (0.25, 0.75), (1.0, 0.0), (-3.0, 1.0), (np.nan, 1.0)])
    def test_grip_follows_the_pen_pressure(self, lane, hand, ease, grip):
        self.point(lane, 0.08, 0.0, ease=ease)
        assert hand.sample(0.1, np.zeros(2)).grip == grip

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

    def test_disengaged_mouse_has_no_grip(self, lane, hand):
        self.point(lane, 0.06, 0.0)
        assert hand.sample(0.001, ORIGIN).grip == 1.0
        self.point(lane, 0.06, 0.0, engaged=0)
        assert hand.sample(0.002, ORIGIN).grip == 0.0

    def test_stays_inside_the_workspace(self, lane, hand):
        hand.sample(0.0, ORIGIN)
        self.point(lane, 5.0, -5.0)
        sample = hand.sample(10.0, ORIGIN)
        assert (sample.x, sample.y) == pytest.approx(WORKSPACE.upper[:1] + WORKSPACE.lower[1:])

    def test_nan_position_has_no_grip(self, lane, hand):
        self.point(lane, math.nan, 0.0)
        assert hand.sample(0.001, ORIGIN) == (0.0, 0.0, 0.0, 0.0, 0.0, 0)

    def test_buttons_of_the_mouse_and_presses_are_combined(self, lane):
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

    def test_restart_resets_the_state(self, lane, hand):
        self.point(lane, 0.06, 0.0)
        first = [hand.sample(k * 1e-3, ORIGIN) for k in range(10)]
        hand.restart()
        assert [hand.sample(k * 1e-3, ORIGIN) for k in range(10)] == first


# --- presses ----------------------------------------------------------------------------------------------------------


TICKS = 250
MILLISECONDS = st.integers(0, 300).map(lambda number: number * 1e-3)
BUTTONS = st.integers(1, MOST_BUTTONS).map(str)
LENGTHS = st.none() | st.integers(1, 200).map(lambda number: number * 1e-3)


def opened(hand, period, name="virtual-joystick", **settings):
    """Return an open virtual device with this hand, which advances by one period with every reading."""
    return devices.open_device(name, {"hand": hand, **settings}, clock=Clock(period))


def buttons_of(device, period):
    """Return which buttons besides the dead-man's are held in each of the first ticks of a run."""
    clock, found = device._clock, []
    for clock.tick in range(TICKS):
        found.append(device.read().buttons & ~DEAD_MAN_BUTTON)
    return found


def due(press, period):
    """Return the ticks for which a press was ordered in whole milliseconds, by whole numbers alone."""
    tick, start = round(period * 1e6), round(press.start * 1e6)
    length = round((CLICK if press.duration is None else press.duration) * 1e6)
    return range(-(-start // tick), -(-(start + length) // tick))


@given(
    presses=st.lists(st.builds(Press, BUTTONS, MILLISECONDS, LENGTHS), max_size=6),
    period=st.sampled_from([1e-3, 5e-4, 1.25e-4, 2e-3]),
    substeps=st.sampled_from([3, 8]),
)
@example([Press("1", 0.011, 0.1), Press("1", 0.111, 0.003), Press("31", 0.0, 0.29)], 1e-3, 8)
@example([Press("2", 0.017)], 1e-3, 3)  # in floating point the sample time is slightly before 0.017 s
@example([Press("2", 0.001, 0.009)], 1e-3, 8)  # the sum is a little more than 0.01
def test_presses_are_held_in_their_ticks(presses, period, substeps):
    hand = {"name": "minimum-jerk", "presses": [str(press) for press in presses]}
    expected = [sum({1 << int(p.name) for p in presses if tick in due(p, period)}) for tick in range(TICKS)]
    device = opened(hand, period, substep=period / substeps, mass=5.0, delay=0.0)
    assert buttons_of(device, period) == expected


@pytest.mark.parametrize("device", ["virtual-joystick", "virtual-arm"])
@pytest.mark.parametrize("name", HANDS)
def test_every_hand_presses_buttons_of_every_virtual_device(tmp_path, name, device):
    hand = {**hand_table(name, tmp_path), "presses": ["2@0.02+0.03", "5@0.04"]}
    held = buttons_of(opened(hand, 1e-3, device), 1e-3)
    mouse = 0b1000 if name == "mouse" else 0
    assert held[:20] == [mouse] * 20
    assert held[20:40] == [mouse | 1 << 2] * 20
    assert held[40:50] == [mouse | 1 << 2 | 1 << 5] * 10
    assert held[50:140] == [mouse | 1 << 5] * 90
    assert held[140:] == [mouse] * (TICKS - 140)


def test_dead_man_button_follows_the_grip():
    script = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]], "presses": ["1@0+10"]}
    loose, firm = opened(script, 1e-3), opened({"name": "minimum-jerk", "presses": ["1@0+10"]}, 1e-3)
    for device, held in ((loose, 0), (firm, DEAD_MAN_BUTTON)):
        device._clock.tick = 5
        assert device.read().buttons == 1 << 1 | held


class Greedy(Hand):
    """A hand in Python that presses every button from 10 ms on."""

    stiffness, damping, start = 0.0, 0.0, (0.0, 0.0)

    def sample(self, time, handle):
        return HandSample(0.0, 0.0, grip=0.0, buttons=-1 if time > 0.0095 else 0)


class GreedySettings(HandSettings):
    def build(self, seed, workspace):
        return Greedy()


def test_python_hand_cannot_press_the_dead_man_button():
    device = opened(GreedySettings(), 1e-3)
    found = []
    for device._clock.tick in range(12):
        found.append(device.read().buttons)
    assert found == [0] * 10 + [0xFFFFFFFE] * 2


def test_presses_on_an_emulated_stick():
    handle = next(iter(PROFILES.values())).handle
    plant = StickPlant(handle, {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]], "presses": ["3@0.01+0.01"]})
    held = []
    for _ in range(30):
        plant.advance((0.0, 0.0))
        held.append(plant.buttons << 1)
    assert held == [0] * 9 + [1 << 3] * 10 + [0] * 11


@pytest.mark.parametrize(
    ("presses", "message"),
    [
        ("2@1", "hand.presses = '2@1': must be a list of texts BUTTON@SECONDS+DURATION"),
        ([2], "hand.presses = [2]: must be a list of texts"),
        (["2"], "hand.presses has '2': must be a list of texts BUTTON@SECONDS"),
        (["0@1"], "press 0@1: must be of a button with a number from 1 to 31 (0, the dead-man's, is held by a firm"),
        (["fire@1"], "press fire@1: must be of a button"),
        (["2@1+0"], "press 2@1+0: must last longer than 0 s"),
    ],
)
def test_invalid_presses_are_rejected(presses, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        make_hand({"name": "minimum-jerk", "presses": presses}, 0, Workspace((-0.1, -0.08), (0.1, 0.08)))


@given(st.lists(st.builds(Press, BUTTONS, st.floats(0.0, 1e7), st.none() | st.floats(1e-3, 1e7)), max_size=8))
def test_format_and_parse_of_presses_are_inverse(presses):
    assert parse_presses([str(press) for press in presses], "") == tuple(presses)
    edges = edges_of(presses)
    assert len(edges) == 0 or edges["buttons"][-1] == 0
    assert (edges["time"][1:] > edges["time"][:-1]).all()


# --- recorded hand ----------------------------------------------------------------------------------------------------


RECORDING = Path(__file__).resolve().parents[4] / "shared" / "data" / "pantograph" / "icube_recording.csv"
GEOMETRY = "# a1=a4=0.1 a2 = a3 = 0.165 a5=0.085 m, q1=2.5656+joint1, q5=0.576+joint2\n"


def recorded(tmp_path, text, **changes):
    path = tmp_path / "path.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return make_hand({"name": "recorded", "file": str(path), **changes}, 0, WORKSPACE)


def position(hand, time):
    sample = hand.sample(time, ORIGIN)
    return sample.x, sample.y


@pytest.mark.parametrize("time_name", ["t", "t_s", "time", "time_s", "Time", " t "])
@pytest.mark.parametrize("names", ["x,y", "x_m,y_m", "position_x,position_y", "px,py", '"x","y"'])
def test_columns_are_found_by_name(tmp_path, time_name, names):
    text = f"# a comment\n\nbuttons,{time_name},{names}\n0,5.0,0.01,0.02\n1,6.0,0.03,0.02\n"
    hand = recorded(tmp_path, text, centre=False)
    assert position(hand, 0.0) == (0.01, 0.02)
    assert position(hand, 1.0) == (0.03, 0.02)
    assert hand.start == (0.01, 0.02)


def test_path_interpolates_its_samples_and_ends_at_rest(tmp_path):
    generator = np.random.default_rng(1)
    times = np.cumsum(generator.uniform(0.05, 0.2, 50))
    path = generator.uniform(-0.05, 0.05, (50, 2))
    rows = "".join(f"{t!r},{x!r},{y!r}\n" for t, (x, y) in zip(times.tolist(), path.tolist(), strict=True))
    hand = recorded(tmp_path, "t,x,y\n" + rows, centre=False)
    for time, point in zip(times - times[0], path, strict=True):
        np.testing.assert_allclose(position(hand, time), point, atol=1e-12)
    for time in (hand.duration, hand.duration + 1e-9, hand.duration + 1e6):
        assert position(hand, time) == tuple(path[-1])
    small = 1e-7
    inner = times[1:-1] - times[0]
    before = np.array([np.subtract(position(hand, t), position(hand, t - small)) for t in inner]) / small
    after = np.array([np.subtract(position(hand, t + small), position(hand, t)) for t in inner]) / small
    np.testing.assert_allclose(before, after, atol=1e-4)
    for end in (0.0, hand.duration - small):
        np.testing.assert_allclose(position(hand, end), position(hand, end + small), atol=1e-11)


@settings(max_examples=12)
@given(
    rows=st.lists(
        st.tuples(st.floats(0.05, 1.0), st.floats(-0.03, 0.03), st.floats(-0.03, 0.03)), min_size=2, max_size=20
    )
)
def test_path_stays_between_neighbouring_samples(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("recorded")
    times = np.cumsum([row[0] for row in rows])
    text = "".join(f"{t!r},{x!r},{y!r}\n" for t, (_, x, y) in zip(times.tolist(), rows, strict=True))
    hand = recorded(folder, "t,x,y\n" + text, centre=False)
    for k in range(len(rows) - 1):
        corners = np.array((rows[k][1:], rows[k + 1][1:]))
        for part in (0.1, 0.5, 0.9):
            point = position(hand, times[k] + part * (times[k + 1] - times[k]) - times[0])
            assert (point >= corners.min(axis=0) - 1e-12).all()
            assert (point <= corners.max(axis=0) + 1e-12).all()


def test_path_is_centred_and_scaled(tmp_path):
    hand = recorded(tmp_path, "t,x,y\n0,1.00,2.00\n1,1.10,2.04\n2,1.05,2.02\n", scale=0.5)
    assert position(hand, 0.0) == pytest.approx((-0.025, -0.01))
    assert position(hand, 1.0) == pytest.approx((0.025, 0.01))
    assert position(hand, 9.0) == pytest.approx((0.0, 0.0))


def test_joint_angles_are_converted_by_the_linkage(tmp_path):
    hand = recorded(tmp_path, GEOMETRY + "t,joint1,joint2\n0,0,0\n1,0.01,-0.01\n", centre=False, scale=0.1)
    linkage = FiveBar(0.1, 0.165, 0.165, 0.1, 0.085, 2.5656, 0.576)
    expected = 0.1 * linkage.positions([[0.0, 0.0], [0.01, -0.01]])
    np.testing.assert_allclose([position(hand, 0.0), position(hand, 1.0)], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"path\.csv: must hold a line of column names and at least two rows"),
        ("t,x,y\n0,0,0\n", r"at least two rows"),
        ("x,y\n0,0\n1,1\n", r"path\.csv: there is no time column \(one of t, .*'x', 'y'"),
        ("t,a,b\n0,0,0\n1,0,0\n", r"path\.csv: there are no columns for the path .*x/y.*joint1/joint2.*'a', 'b'"),
        ("t,x,y\n0,0,0\n1,0\n", r"path\.csv, line 3: has 2 values for 3 columns"),
        ("t,x,y\n0,0,0\n1,zero,0\n", r"path\.csv, line 3, column 'x': 'zero' is not a finite number"),
        ("#\nt,x,y\n\n0,0,nan\n1,0,0\n", r"path\.csv, line 4, column 'y': 'nan'"),
        ("t,x,y\n0,0,0\n1,0,0\n1,0,0\n2,0,0\n", r"path\.csv, line 4: time 1 does not come after 1\."),
        ("t,x,y\n0,0,0\n1,0.3,0\n", r"path\.csv, line 2: the path leaves the workspace.*spans 0\.3 m.*hand\.scale"),
        ("t,x,y\n0,0,0\n0.001,0.05,0\n", r"line 3: the path moves at 50 m/s"),
        ("t,joint1,joint2\n0,0,0\n1,0,0\n", r"lengths in # comment lines.*a1 is missing"),
        ("# a1=0 a2=1 a3=1 a4=1 a5=1\nt,joint1,joint2\n0,0,0\n1,0,0\n", r"path\.csv: linkage\.left_inner = 0\.0"),
        (
            "# a1=a4=0.1 a2=a3=0.01 a5=0.085\nt,joint1,joint2\n0,1.6,1.6\n1,3.1,0\n",
            r"path\.csv, line 3: the linkage cannot|path\.csv, line 4: the linkage cannot",
        ),
        (b"t,x,y\n\xff\xfe0,0\n", r"path\.csv: is not a text file \(byte 6 is not UTF-8\)"),
    ],
)
def test_invalid_file_is_rejected_with_line_and_column(tmp_path, text, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        recorded(tmp_path, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "missing.csv", ".", "a\0b", "x" * 5000])
def test_missing_file_is_rejected(name):
    with pytest.raises(ConfigurationError):
        make_hand({"name": "recorded", "file": name}, 0, WORKSPACE)


NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.floats(-0.1, 0.1).map(repr),
    st.integers(-(10**30), 10**30).map(str),
    st.sampled_from(["", "x", "1e999", "0x10", "1_0", "١"]),
)
LINES = st.one_of(
    st.lists(NUMBERS, min_size=1, max_size=4).map(",".join),
    st.sampled_from(
        ["t,x,y", "time,px,py", "t,joint1,joint2", "# a1=a2=a3=a4=a5=0.1", "# a1=1e999 a2=0", "#", "", "t,x,y,x"]
    ),
    st.text(max_size=20),
)


@st.composite
def tables_of_numbers(draw):
    rows = draw(st.lists(st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 3), min_size=2, max_size=5))
    header = draw(st.sampled_from(["t,x,y", GEOMETRY + "t,joint1,joint2"]))
    return "\n".join([header, *(",".join(map(repr, row)) for row in sorted(rows))])


@settings(max_examples=175, deadline=None)
@given(content=st.lists(LINES, max_size=8).map("\n".join) | tables_of_numbers() | st.binary(max_size=100))
def test_any_content_is_accepted_or_refused(tmp_path_factory, content):
    """Either a hand that gives finite positions inside the workspace, or a ConfigurationError of one line."""
    if isinstance(content, str):
        content = content.encode("utf-8", "surrogatepass")
    try:
        hand = recorded(tmp_path_factory.getbasetemp(), content)
    except ConfigurationError as error:
        assert "path.csv" in str(error)
        assert "\n" not in str(error)
        return
    for time in (0.0, 1e-3, 0.5, 1.0, 1e6):
        assert (np.abs(position(hand, time)) <= np.array(WORKSPACE.upper) * (1.0 + 1e-12)).all()


@pytest.mark.skipif(not RECORDING.exists(), reason="the real recordings are not there: ../shared/data is missing")
def test_real_recording_becomes_a_hand():
    hand = make_hand({"name": "recorded", "file": str(RECORDING)}, 0, WORKSPACE)
    table = read_table(str(RECORDING))
    assert hand.duration == pytest.approx(60.57, abs=0.01)
    points = np.array([position(hand, time) for time in table.times()])
    middle = (points.min(axis=0) + points.max(axis=0)) / 2.0
    np.testing.assert_allclose(middle, (0.0, 0.0), atol=1e-6)
    np.testing.assert_allclose(np.ptp(points, axis=0), (0.00846, 0.01930), atol=1e-5)
