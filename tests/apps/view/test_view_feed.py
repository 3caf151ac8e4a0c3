"""Counts, feeds and history of the live view."""

import contextlib
import multiprocessing
import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apps.front_ends.run import means, runs
from apps.view.feed import SPAN, LiveFeed, ReplayFeed
from apps.view.history import FLAGS, Column, Counts, Durations, History, RateMeter, averages, envelope, every
from haptics.errors import ConfigurationError
from haptics.records import ROW, Status
from haptics.trace import Trace
from tests.apps.view import view_rows
from tests.apps.view.view_rows import numbered

# --- counts and feeds -------------------------------------------------------------------------------------------------


def test_counts_late_ticks_once_flags_each_and_gaps_of_the_servo_only():
    rows = numbered(0, 10)
    rows["status"][3] = Status.STARTED_LATE | Status.ENDED_LATE
    rows["status"][7] = Status.LIMITED
    counts = Counts()
    counts.add(rows)
    assert (counts.ticks, counts.late, counts.skipped) == (10, 1, 0)
    assert counts.flags[FLAGS.index(Status.ENDED_LATE)] == 1
    assert counts.last[FLAGS.index(Status.LIMITED)] == pytest.approx(0.007)
    assert counts.last[FLAGS.index(Status.SLEW)] == -np.inf
    counts.add(numbered(13, 5))
    assert counts.skipped == 3
    counts.add(numbered(28, 2), unseen=8)
    assert counts.skipped == 5, "rows that the view has not seen are no skipped deadlines"


def test_every_flag_and_the_largest_energy_are_counted():
    rows = numbered(0, len(Status))
    rows["status"] = [int(flag) for flag in Status]
    rows["injected_energy"][:4] = (0.0, 2e-3, np.nan, 1e-3)
    counts = Counts()
    counts.add(rows)
    assert set(FLAGS) == set(Status)
    assert (counts.flags == 1).all()
    assert counts.newest == list(Status)[-1]
    assert counts.largest_energy == 2e-3
    counts.add(rows[2:3])
    assert counts.largest_energy == 2e-3


def test_duration_histogram_holds_every_tick():
    lateness = Durations()
    lateness.add(np.array([-5.0, 0.05, 0.1, 11.0, 999.0, 1e6]))
    assert lateness.counts.sum() == 6
    assert lateness.counts[[0, 20, 39, -1]].tolist() == [3, 1, 1, 1]
    assert lateness.maximum == 1e6


def test_rate_is_averaged_over_the_last_second():
    meter = RateMeter()
    rates = [meter.update(0.1 * k, 50 * k) for k in range(30)]
    assert rates[:2] == [None, None]
    assert rates[-1] == pytest.approx(500.0)


def test_live_feed_follows_a_trace_written_by_another_process(tmp_path):
    path = tmp_path / "trace"
    with pytest.raises(ConfigurationError, match="is not a trace"):
        LiveFeed(path, 1000.0)
    writer = multiprocessing.get_context("spawn").Process(target=view_rows.write_trace, args=(str(path), 1500))
    writer.start()
    feed = None
    while feed is None:
        with contextlib.suppress(ConfigurationError):  # the trace does not exist yet or is incomplete
            feed = LiveFeed(path, 1000.0)
    while feed.counts.ticks + feed.unseen < 1500:
        feed.pull(time.monotonic())
    writer.join()
    assert (np.diff(feed.history.column(Column.TIME)) > 0).all()
    assert feed.counts.skipped == 0
    feed = LiveFeed(path, 1000.0)
    assert feed.pull(0.0) == 1500
    assert feed.pull(0.1) == 0
    expected = view_rows.simulate(1500)
    assert feed.history.column(Column.X) == pytest.approx(1e3 * expected["position"][:, 0])
    assert (feed.counts.ticks, feed.unseen) == (1500, 0)


def test_live_feed_counts_overwritten_rows(tmp_path):
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


@given(st.lists(st.integers(0, 6499), min_size=1, max_size=6))
def test_replay_state_does_not_depend_on_earlier_seeks(places):
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
    assert (wandering.counts.lateness.counts == direct.counts.lateness.counts).all()
    assert len(wandering.history) == min(places[-1] + 1, SPAN * 1000)


REPLAYED = numbered(0, 6500)
REPLAYED["status"][::17] = Status.SLEW
REPLAYED["period_error"] = 1e-6 * (np.arange(6500) % 97)


# --- history ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 57), max_size=30))
def test_history_holds_the_newest_rows_in_order(sizes):
    history, total = History(20), 0
    for size in sizes:
        history.append(numbered(total, size))
        total += size
        expected = np.arange(max(total - 20, 0), total)
        assert history.column(Column.X) == pytest.approx(expected)
        assert (history.first, history.count) == (max(total - 20, 0), total)


def test_history_converts_to_the_units_of_the_display():
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


def test_history_shows_the_hand_force_of_an_admittance_device_and_zero_for_nan():
    row = np.zeros(1, ROW)
    row["force"] = 5.0, 12.0
    history = History(10, "admittance")
    history.append(row)
    assert history.newest(Column.FORCE) == pytest.approx(13.0)
    row["position"], row["command"] = (np.nan, np.inf), (np.nan, 1.0)
    history.append(row)
    assert np.isfinite([history.newest(column) for column in Column]).all()


@given(st.integers(0, 1000), st.integers(1, 200), st.integers(1, 30))
def test_thinning_does_not_depend_on_the_window(first, length, stride):
    numbers = first + every(first, length, stride)
    assert numbers[-1] == first + length - 1
    assert all(number % stride == 0 for number in numbers[:-1])
    assert set(range(-(-first // stride) * stride, first + length, stride)) <= set(numbers.tolist())


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=300), st.integers(0, 50), st.integers(1, 20))
@example([float(k % 7) for k in range(100)], 3, 4)
def test_envelope_keeps_order_and_the_extremes_of_whole_bins(signal, first, size):
    values = np.array(signal)
    places, extremes = envelope(values, first, size)
    assert (np.diff(places) >= 0).all()
    assert (values[places.astype(int)] == extremes).all()
    whole = values[-first % size :] if size > 1 and len(values) >= 2 * size else values
    assert (extremes.max(), extremes.min()) == (whole.max(), whole.min())


@given(st.integers(0, 50), st.integers(0, 300), st.integers(1, 20))
def test_averages_do_not_depend_on_the_window(first, length, size):
    numbers = np.arange(first, first + length, dtype=float)
    places, values = averages(numbers, first, size)
    assert first + places - 0.5 == pytest.approx(values)
    assert values == pytest.approx(np.arange(-(-first // size), (first + length) // size) * size + 0.5 * (size - 1))


def test_runs_and_their_means():
    stretches = runs(np.array([1.0, 1, 0, 0, 1, 0, 1]))
    assert (stretches.start.tolist(), stretches.stop.tolist()) == ([0, 4, 6], [2, 5, 7])
    assert means(np.array([1.0, 3, 9, 9, 5, 9, 7]), stretches).tolist() == [2.0, 5.0, 7.0]
    assert len(runs(np.zeros(4)).start) == 0


def test_work_does_not_depend_on_the_chunk_size():
    rows = numbered(0, 300)
    rows["friction_force"], rows["velocity"], rows["sliding_velocity"] = (3.0, 4.0), (0.03, 0.04), (0.06, 0.08)
    history = History(50, kept=100)
    for part in np.array_split(rows, 17):
        history.append(part)
    # 5 N at 50 mm/s is 0.25 W, and 299 ms of it 74.75 mJ; the proxy is twice as fast.
    assert history.newest(Column.WORK) == pytest.approx(74.75)
    assert history.newest(Column.DISSIPATED) == pytest.approx(149.5)
