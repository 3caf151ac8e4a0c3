"""The view's data side, which knows nothing of Qt."""

from __future__ import annotations

import math
import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.session.messages import HOLD_EVERY
from apps.view.counts import FLAGS, Counts, Durations, RateMeter
from apps.view.feed import SPAN, LiveFeed, ReplayFeed
from apps.view.history import Column, History, arrow, averages, envelope, every, means, runs, segments
from apps.view.run import RunInfo, from_message, from_metadata, levels
from apps.view.scale import STEPS, AxisTop, SliderScale, clock, microseconds, millijoules, nice_ceiling
from apps.view.summary import certificate, durations, verdict
from apps.view.theme import DARK, LIGHT, Theme, blend, by_name, other
from haptics.errors import ConfigurationError
from haptics.job import KEY_LASTS
from haptics.trace import ROW, Status
from tests.apps.view import view_rows


def numbered(first: int, count: int) -> np.ndarray:
    """Return rows whose x position [mm] is their number."""
    rows = np.zeros(count, ROW)
    rows["tick"] = np.arange(first, first + count)
    rows["time"] = 1e-3 * rows["tick"]
    rows["position"][:, 0] = 1e-3 * rows["tick"]
    return rows


# --- history


@given(st.lists(st.integers(0, 57), max_size=30))
def test_history_holds_the_newest_rows_in_order_however_they_come(sizes: list[int]) -> None:
    history, total = History(20), 0
    for size in sizes:
        history.append(numbered(total, size))
        total += size
        expected = np.arange(max(total - 20, 0), total)
        assert history.column(Column.X) == pytest.approx(expected)
        assert (history.first, history.count) == (max(total - 20, 0), total)


def test_history_converts_to_the_units_of_the_display() -> None:
    row = np.zeros(1, ROW)
    row["position"], row["proxy"], row["velocity"] = (0.01, -0.02), (0.011, -0.02), (0.3, 0.4)
    row["command"], row["friction_force"], row["force"] = (-3.0, 4.0), (0.6, 0.8), (5.0, 12.0)
    row["period_error"], row["sticking"], row["injected_energy"] = 25e-6, 1, 3e-3
    history = History(10)
    history.append(row)
    shown = {column: history.newest(column) for column in Column}
    assert (shown[Column.X], shown[Column.Y], shown[Column.PROXY_X]) == pytest.approx((10, -20, 11))
    assert (shown[Column.VECTOR_X], shown[Column.VECTOR_Y], shown[Column.FORCE]) == pytest.approx((-3, 4, 5))
    assert (shown[Column.FRICTION], shown[Column.SPEED]) == pytest.approx((1.0, 500.0))
    assert (shown[Column.LATENESS], shown[Column.STICKING], shown[Column.ENERGY]) == pytest.approx((25.0, 1.0, 3.0))


def test_history_of_an_admittance_device_shows_the_hand_force() -> None:
    row = np.zeros(1, ROW)
    row["command"], row["force"] = (0.01, 0.02), (5.0, 12.0)
    history = History(10, "admittance")
    history.append(row)
    assert history.newest(Column.FORCE) == pytest.approx(13.0)


def test_history_draws_a_row_that_is_not_finite_as_zero() -> None:
    row = np.zeros(1, ROW)
    row["position"], row["command"] = (np.nan, np.inf), (np.nan, 1.0)
    history = History(10)
    history.append(row)
    assert np.isfinite([history.newest(column) for column in Column]).all()


# --- thinning


@given(st.integers(0, 1000), st.integers(1, 200), st.integers(1, 30))
def test_every_chooses_the_same_rows_whatever_the_window(first: int, length: int, stride: int) -> None:
    numbers = first + every(first, length, stride)
    assert numbers[-1] == first + length - 1
    assert all(number % stride == 0 for number in numbers[:-1])
    assert set(range(-(-first // stride) * stride, first + length, stride)) <= set(numbers.tolist())


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=300), st.integers(0, 50), st.integers(1, 20))
def test_envelope_keeps_order_and_values_and_the_extremes_of_whole_bins(
    signal: list[float], first: int, size: int
) -> None:
    values = np.array(signal)
    places, extremes = envelope(values, first, size)
    assert (np.diff(places) >= 0).all()
    assert (values[places.astype(int)] == extremes).all()
    whole = values[-first % size :] if size > 1 and len(values) >= 2 * size else values
    assert (extremes.max(), extremes.min()) == (whole.max(), whole.min())


@given(st.integers(0, 50), st.integers(0, 300), st.integers(1, 20))
def test_averages_are_over_the_same_rows_whatever_the_window(first: int, length: int, size: int) -> None:
    numbers = np.arange(first, first + length, dtype=float)
    places, values = averages(numbers, first, size)
    assert first + places - 0.5 == pytest.approx(values)
    assert values == pytest.approx(np.arange(-(-first // size), (first + length) // size) * size + 0.5 * (size - 1))


def test_runs_and_their_means() -> None:
    stretches = runs(np.array([1.0, 1, 0, 0, 1, 0, 1]))
    assert (stretches.start.tolist(), stretches.stop.tolist()) == ([0, 4, 6], [2, 5, 7])
    assert means(np.array([1.0, 3, 9, 9, 5, 9, 7]), stretches).tolist() == [2.0, 5.0, 7.0]
    assert len(runs(np.zeros(4)).start) == 0


def test_segments_are_pairs_from_the_path_along_the_force() -> None:
    x, y = segments(np.array([0.0, 1]), np.array([2.0, 3]), np.array([10.0, 20]), np.array([0.0, -1]))
    assert x.tolist() == [0, 10, 1, 21]
    assert y.tolist() == [2, 2, 3, 2]


@given(st.floats(0.1, 100), st.floats(-math.pi, math.pi), st.floats(0.01, 5))
def test_arrow_barbs_are_symmetric_and_point_back(length: float, angle: float, barb: float) -> None:
    x, y = arrow(1.0, 2.0, length * math.cos(angle), length * math.sin(angle), barb)
    tip = np.array([x[1], y[1]])
    left, right = np.array([x[3], y[3]]) - tip, np.array([x[5], y[5]]) - tip
    shaft = tip - (1.0, 2.0)
    assert np.hypot(*left) == pytest.approx(np.hypot(*right))
    assert np.hypot(*left) <= min(barb, 0.5 * length) * (1 + 1e-9)
    assert left @ shaft == pytest.approx(right @ shaft)
    assert left @ shaft < 0


def test_arrow_of_no_force_is_a_point() -> None:
    x, y = arrow(1.0, 2.0, 0.0, 0.0, 1.0)
    assert set(x) == {1.0}
    assert set(y) == {2.0}


# --- counting


def test_counts_late_ticks_once_and_flags_each() -> None:
    rows = numbered(0, 10)
    rows["status"][3] = Status.STARTED_LATE | Status.ENDED_LATE
    rows["status"][7] = Status.LIMITED
    counts = Counts()
    counts.add(rows)
    assert (counts.ticks, counts.late, counts.skipped) == (10, 1, 0)
    assert counts.flags[FLAGS.index(Status.ENDED_LATE)] == 1
    assert counts.last[FLAGS.index(Status.LIMITED)] == pytest.approx(0.007)
    assert counts.last[FLAGS.index(Status.SLEW)] == -np.inf


def test_every_flag_of_a_tick_is_counted() -> None:
    rows = numbered(0, len(Status))
    rows["status"] = [int(flag) for flag in Status]
    counts = Counts()
    counts.add(rows)
    assert set(FLAGS) == set(Status)
    assert (counts.flags == 1).all()
    assert counts.newest == list(Status)[-1]


def test_the_largest_energy_survives_what_is_no_number() -> None:
    rows = numbered(0, 4)
    rows["injected_energy"] = (0.0, 2e-3, np.nan, 1e-3)
    counts = Counts()
    counts.add(rows)
    assert counts.largest_energy == 2e-3
    counts.add(rows[2:3])
    assert counts.largest_energy == 2e-3


def test_skipped_deadlines_are_gaps_that_were_not_lost_on_the_way() -> None:
    counts = Counts()
    counts.add(numbered(0, 10))
    counts.add(numbered(13, 5))
    assert counts.skipped == 3
    counts.add(numbered(28, 2), unseen=8)
    assert counts.skipped == 5


def test_bins_hold_every_tick() -> None:
    lateness = Durations()
    lateness.add(np.array([-5.0, 0.05, 0.1, 11.0, 999.0, 1e6]))
    assert lateness.counts.sum() == 6
    assert lateness.counts[0] == 3
    assert lateness.counts[20] == 1
    assert lateness.counts[39] == 1
    assert lateness.counts[-1] == 1
    assert lateness.maximum == 1e6


def test_rate_is_rows_per_second_over_the_last_second() -> None:
    meter = RateMeter()
    for k in range(30):
        meter.update(0.1 * k, 50 * k)
    assert meter.rate == pytest.approx(500.0)


def test_rate_is_unknown_at_first() -> None:
    meter = RateMeter()
    meter.update(0.0, 0)
    meter.update(0.1, 100)
    assert meter.rate is None


# --- feeds


def test_live_feed_follows_a_trace_written_by_another_process(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    writer = multiprocessing.get_context("spawn").Process(target=view_rows.write_trace, args=(str(path), 1500))
    writer.start()
    writer.join()
    feed = LiveFeed(path, 1000.0)
    assert feed.pull(0.0) == 1500
    assert feed.pull(0.1) == 0
    expected = view_rows.simulate(1500)
    assert feed.history.column(Column.X) == pytest.approx(1e3 * expected["position"][:, 0])
    assert (feed.counts.ticks, feed.unseen) == (1500, 0)


def test_live_feed_while_the_other_process_is_writing(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    writer = multiprocessing.get_context("spawn").Process(target=view_rows.write_trace, args=(str(path), 1500))
    writer.start()
    while not path.exists() or path.stat().st_size < 4096:
        time.sleep(0.001)
    time.sleep(0.01)
    feed, pulls = LiveFeed(path, 1000.0), 0
    while feed.counts.ticks + feed.unseen < 1500:
        feed.pull(time.monotonic())
        pulls += 1
    writer.join()
    assert (np.diff(feed.history.column(Column.TIME)) > 0).all()
    assert feed.counts.skipped == 0


def test_live_feed_counts_rows_it_was_too_slow_for(tmp_path: Path) -> None:
    from haptics.trace import Trace

    trace = Trace.create(tmp_path / "trace", capacity=64)
    feed = LiveFeed(trace.path, 1000.0)
    for row in numbered(0, 32):
        trace.append(row)
    feed.pull(0.0)
    for row in numbered(32, 100):
        trace.append(row)
    feed.pull(0.1)
    assert feed.unseen == 100 - 63
    assert feed.counts.skipped == 0


def test_live_feed_of_no_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a trace"):
        LiveFeed(tmp_path / "nothing", 1000.0)


@given(st.lists(st.integers(0, 6499), min_size=1, max_size=6))
def test_replay_shows_the_same_whichever_way_one_came(places: list[int]) -> None:
    rows = REPLAYED
    wandering, direct = ReplayFeed(rows, 1000.0), ReplayFeed(rows, 1000.0)
    for place in places:
        wandering.seek(place)
    direct.seek(places[-1])
    assert wandering.index == places[-1]
    for column in (Column.X, Column.FORCE, Column.LATENESS):
        assert (wandering.history.column(column) == direct.history.column(column)).all()
    assert wandering.counts.ticks == places[-1] + 1
    assert (wandering.counts.flags == direct.counts.flags).all()
    assert (wandering.lateness.counts == direct.lateness.counts).all()
    assert len(wandering.history) == min(places[-1] + 1, SPAN * 1000)


REPLAYED = numbered(0, 6500)
REPLAYED["status"][::17] = Status.SLEW
REPLAYED["period_error"] = 1e-6 * (np.arange(6500) % 97)


# --- numbers


@given(
    st.integers(0, STEPS),
    st.floats(1e-3, 1e3),
    st.floats(1.5, 1e4),
    st.booleans(),
)
def test_slider_positions_go_to_values_and_back(position: int, lower: float, ratio: float, by_ratio: bool) -> None:
    scale = SliderScale(lower, lower * ratio, by_ratio)
    value = scale.value(position)
    assert lower * (1 - 1e-9) <= value <= lower * ratio * (1 + 1e-9)
    assert scale.position(value) == position


def test_logarithmic_slider_moves_in_equal_ratios() -> None:
    scale = SliderScale(100.0, 10000.0, logarithmic=True)
    assert scale.value(STEPS // 2) == pytest.approx(1000.0)
    assert scale.value(0) == pytest.approx(100.0)
    assert scale.value(STEPS) == pytest.approx(10000.0)


def test_logarithmic_slider_down_to_zero_is_linear() -> None:
    assert SliderScale(0.0, 10.0, logarithmic=True).value(STEPS // 2) == pytest.approx(5.0)


@given(st.integers(-20, 20), st.integers(1, 2000))
def test_slider_of_a_count_steps_by_one(lower: int, length: int) -> None:
    scale = SliderScale(lower, lower + length, logarithmic=True, whole=True)
    values = [scale.value(position) for position in range(scale.steps + 1)]
    assert values == pytest.approx(range(lower, lower + length + 1), abs=1e-9)
    assert [scale.position(value) for value in values] == list(range(length + 1))
    assert scale.decimals == 0


def test_slider_of_a_single_value_stays_there() -> None:
    scale = SliderScale(2.0, 2.0)
    assert scale.position(2.0) == 0
    assert scale.value(0) == 2.0
    assert scale.decimals == 2


@given(st.floats(1e-6, 1e6))
def test_nice_ceiling_is_close_above(value: float) -> None:
    assert value * (1 - 1e-8) <= nice_ceiling(value) <= 1.51 * value


def test_nice_ceiling_of_nonsense_is_one() -> None:
    assert [nice_ceiling(value) for value in (0.0, -3.0, math.nan, math.inf)] == [1.0] * 4


def test_axis_grows_at_once_and_shrinks_after_a_while() -> None:
    axis = AxisTop(1.0, patience=3)
    assert axis.follow(9.0)
    assert axis.top == 10.0
    assert [axis.follow(2.0) for _ in range(4)] == [False, False, False, True]
    assert axis.top == 2.5


def test_texts_of_times() -> None:
    assert [microseconds(us) for us in (0.0341, 21.4, 1300.0)] == ["0.034 µs", "21 µs", "1.3 ms"]
    assert (clock(0.0), clock(59.96), clock(75.25)) == ("0:00.0", "1:00.0", "1:15.3")


# --- what is known of a run


def test_texts_of_energies_go_with_their_limit() -> None:
    assert (millijoules(0.1), millijoules(0.02)) == ("100", "20")
    assert [millijoules(8.26e-4, limit) for limit in (1.0, 0.1, 0.02, 1e-4)] == ["1", "0.8", "0.83", "0.8260"]


def test_a_held_key_is_repeated_before_it_counts_as_released() -> None:
    assert 2 * HOLD_EVERY < KEY_LASTS


def test_run_of_a_message(started) -> None:
    info = from_message(started)
    assert info.title == "model C on virtual-joystick"
    assert info.force_name == "command"
    assert (info.workspace, info.rate, info.mouse) == (started.workspace, 1000.0, True)
    assert (info.max_energy, info.dead_man) == (started.max_energy, started.dead_man)


def test_run_of_a_recording_takes_what_is_said(rows) -> None:
    info = from_metadata(view_rows.METADATA, rows)
    assert (info.device, info.model, info.causality) == ("virtual-joystick", "C", "impedance")
    assert info.workspace == ((-0.06, -0.045), (0.06, 0.045))
    assert levels({p.key: p.value for p in info.parameters}) == (4.0,)
    assert info.force_scale == 4.0
    assert (info.max_energy, info.dead_man) == (0.02, "none")


def test_run_of_a_recording_reads_the_configuration_too(rows) -> None:
    tables = {"law": {"name": "coulomb", "force": 3.0}, "element": {"stiffness": 500.0}, "session": {"rate": 1.0}}
    tables["device"] = {"name": "virtual-joystick", "hand": {"name": "minimum-jerk"}}
    info = from_metadata({"configuration": tables}, rows)
    assert {p.key: p.value for p in info.parameters} == {"law.force": 3.0, "element.stiffness": 500.0}
    assert [p.unit for p in info.parameters] == ["N", "N/m"]
    assert info.hand == "minimum-jerk"


def test_run_of_a_recording_that_says_nothing_is_guessed(rows) -> None:
    info = from_metadata({}, rows)
    (left, low), (right, high) = info.workspace
    assert left < rows["position"][:, 0].min() < rows["position"][:, 0].max() < right
    assert low < rows["position"][:, 1].min() < rows["position"][:, 1].max() < high
    assert info.force_scale == pytest.approx(4.0, rel=0.05)
    assert (info.rate, info.causality) == (1000.0, "impedance")


@pytest.mark.parametrize(("model", "causality"), [("A", "admittance"), ("B", "impedance"), ("D", "admittance")])
def test_causality_is_guessed_from_the_model(rows, model: str, causality: str) -> None:
    assert from_metadata({"model": model}, rows).causality == causality


def test_admittance_devices_show_the_hand_force() -> None:
    assert RunInfo(causality="admittance").force_name == "hand force"


SUMMARY = {
    "ticks": 12000,
    "rate_hz": 1000.0,
    "skipped": 2,
    "lost_ticks": 1,
    "overruns": 34,
    "unusable_ticks": 7,
    "longest_gap_us": 3020.0,
    "period_error_us": {"p50": 21.0, "p99": 63.0, "p999": 410.0, "max": 1377.0},
    "tick_us": {"p50": 8.0, "p99": 14.0, "p999": 31.0, "max": 55.0},
    "write_us": {"p50": 6.0, "p99": 11.0, "p999": 24.0, "max": 43.0},
    "sample_age_us": {"p50": 0.0, "p99": 0.0, "p999": 0.0, "max": 0.0},
    "realtime": "fifo",
    "processors": "1",
    "stolen_s": 0.25,
    "involuntary_switches": 9,
    "major_faults": 0,
    "fit": True,
    "unfit_because": [],
    "force_n": {"mean": 2.5, "max": 4.0},
    "stick_fraction": 0.385,
}
REASONS = ["12 % of the ticks started or ended late; fitness.late_share allows 5 %", "3 ticks were lost"]
UNFIT = {**SUMMARY, "fit": False, "unfit_because": REASONS}


def certificate_text(summary: dict[str, object]) -> str:
    """Return the lines of a certificate with ordinary spaces."""
    return "\n".join(f"{name}: {value}" for name, value in certificate(summary)).replace("\u00a0", " ")


def test_certificate_says_everything_that_was_counted() -> None:
    text = certificate_text(SUMMARY)
    for part in ("12\u2009000 at 1000 Hz", "2 skipped", "34 late", "1 lost", "7 without a sample", "3.02 ms between"):
        assert part in text
    for part in ("real time (FIFO), pinned to processor 1", "mean 2.50 N", "max 4.00 N", "38 % of the time"):
        assert part in text
    assert "disturbed by: 0.25 s stolen by the hypervisor, 9 interruptions" in text


def test_what_says_nothing_is_left_out() -> None:
    quiet = {**SUMMARY, "stolen_s": 0.0, "involuntary_switches": 0, "unusable_ticks": 0, "major_faults": None}
    text = certificate_text(quiet)
    assert "disturbed" not in text
    assert "trusted" not in text
    assert "sample age" not in durations(SUMMARY)
    assert durations({**SUMMARY, "sample_age_us": {"p50": 0.0, "max": 900.0}})["sample age"] == {"p50": 0, "max": 900}


def test_quantiles_of_all_durations() -> None:
    found = durations(SUMMARY)
    assert list(found) == ["lateness", "work per tick", "command out"]
    assert found["lateness"] == {"p50": 21.0, "p99": 63.0, "p99.9": 410.0, "max": 1377.0}


def test_the_certificate_of_a_recording_has_other_names() -> None:
    recorded = {"ticks": 10, "scheduling": "other", "processors": "0, 1"}
    assert "scheduling: ordinary, processors 0, 1" in certificate_text(recorded)


def test_the_verdict_has_its_reasons() -> None:
    assert verdict({"ticks": 5}) is None
    fit, unfit = verdict(SUMMARY), verdict(UNFIT)
    assert fit is not None
    assert unfit is not None
    assert (fit.word, fit.reasons) == ("fit", ())
    assert (unfit.word, unfit.reasons) == ("UNFIT", tuple(REASONS))


def test_certificate_of_a_run_that_never_ran_is_empty() -> None:
    assert certificate({}) == []
    assert durations({}) == {}
    assert certificate({"force_n": {}, "stick_fraction": None}) == []


# --- colours


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    """Return the contrast ratio of WCAG 2."""
    bright, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
def test_texts_and_lines_stand_out(theme: Theme) -> None:
    for ground in (theme.ground, theme.panel):
        assert contrast(theme.text, ground) >= 7
        assert contrast(theme.faint, ground) >= 4.5
    for line in (theme.motion, theme.stick, theme.friction, theme.force):
        assert contrast(line, theme.panel) >= 3
    assert contrast(theme.on_stop, theme.stop) >= 4.5
    assert contrast(theme.on_alarm, theme.alarm) >= 7
    assert contrast("#000000", theme.notice) >= 7


def test_blend_goes_from_the_ground_to_the_colour() -> None:
    assert [blend("#ff8000", "#000040", share) for share in (0.0, 0.5, 1.0)] == ["#000040", "#804020", "#ff8000"]


def test_themes_by_name() -> None:
    assert (by_name("dark"), by_name("light")) == (DARK, LIGHT)
    assert (by_name("auto", desktop_is_dark=True), by_name("auto")) == (DARK, LIGHT)
    assert (other(DARK), other(LIGHT)) == (LIGHT, DARK)


def test_the_data_side_does_without_qt() -> None:
    modules = ("counts", "feed", "history", "link", "run", "scale", "summary", "theme", "process", "screenshot")
    code = f"import sys; sys.path[:0] = {sys.path!r}; " + "; ".join(f"import apps.view.{name}" for name in modules)
    code += "; sys.exit(any(name.split('.')[0] in ('PySide6', 'pyqtgraph') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
