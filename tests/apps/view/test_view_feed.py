"""What the view counts, and the feeds that its rows come from."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.view.counts import FLAGS, Counts, Durations, RateMeter
from apps.view.feed import SPAN, LiveFeed, ReplayFeed
from apps.view.history import Column
from haptics.errors import ConfigurationError
from haptics.records import Status
from tests.apps.view import view_rows
from tests.apps.view.view_rows import numbered


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
    feed, pulls = None, 0
    while feed is None:
        with contextlib.suppress(ConfigurationError):  # it is not there yet, or not complete
            feed = LiveFeed(path, 1000.0)
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
