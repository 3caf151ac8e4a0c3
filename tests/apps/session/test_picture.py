"""Report and picture of a run."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from apps.session.run import describe_run
from apps.shared.picture import _Cells, _Run, _Spans, draw
from haptics.device import Causality
from haptics.recording.certificate import Fitness
from haptics.recording.recorder import Recorder
from haptics.recording.recording import Recording
from haptics.records import ROW, Status
from haptics.trace import Reader, Trace
from tests.apps.view.summaries import SUMMARY
from tests.certificates import certificate
from tests.haptics.doubles import make_spec

# --- report -----------------------------------------------------------------------------------------------------------

SESSION: dict[str, Any] = {
    **{"device": "virtual-joystick", "model": "C", "reason": "completed", "recording": "recordings/run"},
    **{"picture": None, "realtime": "other", "processors": "0, 1"},
}


def lines(**changes):
    return describe_run({**SUMMARY, **SESSION, **changes}).splitlines()


def test_report_lists_the_measurements():
    text = lines()
    assert text[0] == "virtual-joystick, model C, 1000 Hz: completed"
    for line in (
        "  verdict           fit",
        "  deadlines         2 skipped, 34 late, 1 lost, 7 unusable samples",
        "  longest gap       3.02 ms between two ticks",
        "  scheduling        not real-time, CPUs 0, 1",
        "  disturbed by      CPU steal 0.25 s, 9 preemptions",
        "  force             mean 2.50 N, max 4.00 N",
        "  start delay       p50 21 us, p99 63 us, p99.9 410 us, max 1.38 ms",
    ):
        assert line in text
    assert not any("sample age" in line for line in text)
    assert "\n".join(text).isascii()


def test_report_of_an_unfit_run_begins_with_the_reasons_and_fits_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    reasons = ["12 % of the ticks started or ended late", "3 ticks were lost"]
    text = lines(fit=False, unfit_because=reasons)
    assert text[1:4] == ["  verdict           UNFIT", *(f"  because           {reason}" for reason in reasons)]
    text = lines(fit=False, unfit_because=["12 % of the ticks were late " * 6], advice=["too stiff " * 30])
    assert max(map(len, text)) <= 80


def test_report_of_a_run_without_ticks():
    empty: dict[str, Any] = {"period_error_us": {}, "tick_us": {}, "write_us": {}, "sample_age_us": {}, "force_n": {}}
    text = lines(**empty, ticks=0, skipped=0, overruns=0, longest_gap_us=None, stick_fraction=None, stolen_s=None)
    assert "  ticks             0" in text
    assert not any("start delay" in line or "force" in line or "sticking" in line for line in text)


def test_report_ends_with_the_advice():
    advice = ["element.stiffness = 9000 N/m: " + "too stiff for this device, " * 8, "law.force: lower it."]
    text = lines(advice=advice)
    start = next(number for number, line in enumerate(text) if line.startswith("  advice"))
    assert " ".join(" ".join(text[start:]).split()) == f"advice {advice[0].strip()} advice {advice[1]}"
    assert not any(line.startswith("  advice") for line in text[:start])


# --- picture ----------------------------------------------------------------------------------------------------------


def record(folder, rows, causality, result=None):
    configuration = {"law": {"name": "coulomb", "force": 4.0}, "element": {"stiffness": 6000.0}}
    metadata: dict[str, Any] = {"model": "C", "rate_hz": 1000.0, "configuration": configuration}
    metadata["device"] = asdict(make_spec(causality))
    (folder / "trace").unlink(missing_ok=True)
    trace = Trace.create(folder / "trace", capacity=len(rows) + 2)
    count = len(list(folder.iterdir()))
    recorder = Recorder(folder / f"run-{count}", metadata)
    recorder.attach(Reader(trace))
    for row in rows:
        trace.append(row)
    recorder.drain()
    recorder.close(result or {}, complete=True)
    return Recording(recorder.folder)


def circle(count):
    rows = np.zeros(count, ROW)
    t = np.arange(count) * 1e-3
    rows["tick"], rows["time"] = np.arange(count), t
    rows["position"] = 0.05 * np.stack((np.cos(2 * t), np.sin(2 * t)), axis=1)
    rows["command"] = rows["force"] = 4.0 * np.stack((np.sin(2 * t), -np.cos(2 * t)), axis=1)
    rows["friction_force"] = -rows["command"]
    rows["sticking"] = np.sin(5 * t) > 0.5
    rows["period_error"], rows["tick_time"] = 1e-5, 3e-5
    return rows


@pytest.mark.parametrize("causality", Causality)
@pytest.mark.parametrize("count", [1, 2, 3000])
def test_picture_is_drawn_as_png(tmp_path, causality, count):
    path = draw(record(tmp_path, circle(count), causality))
    assert path is not None
    assert Path(path).read_bytes().startswith(b"\x89PNG")


def test_picture_of_invalid_samples_or_no_motion_is_drawn(tmp_path):
    rows = circle(2000)
    rows["position"][500:600] = np.nan
    rows["force"][500:600] = np.inf
    assert draw(record(tmp_path, rows, Causality.ADMITTANCE)) is not None
    rows = circle(2000)
    rows["position"] = rows["command"] = rows["friction_force"] = 0.0
    rows["sticking"] = 1
    assert draw(record(tmp_path, rows, Causality.IMPEDANCE)) is not None
    assert draw(record(tmp_path, circle(0), Causality.IMPEDANCE)) is None


def words_of(figure):
    return "\n".join(text.get_text() for text in figure.findobj(Text))


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """Return a function that draws a recording and returns the figure."""
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: figures.append(figure))

    def picture(rows, causality=Causality.IMPEDANCE, **result):
        draw(record(tmp_path, rows, causality, result))
        return figures[-1]

    return picture


def test_picture_names_the_flags_that_occurred(drawn):
    rows = circle(3000)
    rows["status"][:100] = Status.FADE
    rows["status"][2000] = Status.PASSIVITY | Status.IMPLAUSIBLE
    figure = drawn(rows)
    (axes,) = (axes for axes in figure.axes if "fade" in [label.get_text() for label in axes.get_yticklabels()])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["fade", "implausible", "passivity"]
    (long, _, short) = axes.collections
    width = [collection.get_paths()[0].get_extents().width for collection in (long, short)]
    assert width == pytest.approx([0.1, 0.001])


@pytest.mark.parametrize(("peak", "limit_is_drawn"), [(0.4, False), (0.06, False), (80.0, True)])
def test_picture_keeps_the_energy_peak_and_limit(drawn, peak, limit_is_drawn):
    rows = circle(50_000)
    rows["injected_energy"][31_417] = 1e-3 * peak
    rows["injected_energy"][100] = np.nan
    figure = drawn(rows, limits={"max_energy": 0.1})
    (axes,) = (axes for axes in figure.axes if axes.get_ylabel() == "energy [mJ]")
    assert max(line.get_ydata().max() for line in axes.lines[:1]) == pytest.approx(peak)
    assert (len(axes.lines) == 2) == limit_is_drawn
    assert axes.get_ylim()[1] > max(peak, 100.0 * limit_is_drawn)
    assert f"at most {peak:.3g} of 100 mJ" in words_of(figure)


@pytest.mark.parametrize("count", [3000, 50_001])
def test_picture_lines_keep_the_extremes(drawn, count):
    rows = circle(count)
    rows["friction_force"][1234] = 3.0, 4.0
    rows["friction_force"][2345] = 0.0
    rows["position"][2501] = 0.123, -0.456
    axes = {axes.get_ylabel(): axes for axes in drawn(rows).axes}
    (friction,) = axes["force [N]"].lines
    x, y = axes["position [mm]"].lines
    path = axes["y [mm]"].lines[0]
    assert (np.min(friction.get_ydata()), np.max(friction.get_ydata())) == pytest.approx((0.0, 5.0))
    assert np.max(x.get_ydata()) == pytest.approx(123.0)
    assert np.min(y.get_ydata()) == pytest.approx(-456.0)
    assert (np.max(path.get_xdata()), np.min(path.get_ydata())) == pytest.approx((123.0, -456.0))
    for line in (friction, x, y):
        assert tuple(np.asarray(line.get_xdata())[[0, -1]]) == (rows["time"][0], rows["time"][-1])
        assert len(np.asarray(line.get_xdata())) <= 3000


def test_picture_histograms_count_every_tick(drawn):
    rows = circle(3000)
    rows["period_error"][:7], rows["tick_time"][7:9] = 0.0, 1e-3
    (axes,) = (axes for axes in drawn(rows).axes if axes.get_ylabel() == "ticks")
    late, took = (patch.get_data().values for patch in axes.patches)
    assert sorted(late[late > 0]) == [7, 2993]
    assert sorted(took[took > 0]) == [2, 2998]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["10⁻¹", "10⁰", "10¹", "10²", "10³", "10⁴"]


def test_picture_shows_the_verdict(drawn):
    rows = circle(3000)
    assert "no certificate" in words_of(drawn(rows))
    rows["status"][:1000] = Status.STARTED_LATE
    timing = certificate(rows, 3000, 3000, 1e-3)
    for fitness, word in ((Fitness(late_share=0.5), "fit\n"), (Fitness(), "UNFIT: 33.3 % of the ticks")):
        reasons = fitness.evaluate(timing)
        text = words_of(drawn(rows, certificate={**timing, "fit": not reasons, "unfit_because": reasons}))
        assert word in text
        assert "3000 ticks, 0 skipped, 1000 late, 0 lost" in text
        assert "computation time p50 30 µs" in text


@pytest.mark.parametrize("size", [1, 7, 100, 1000])
def test_flag_spans_do_not_depend_on_the_chunk_size(size):
    flags = np.random.default_rng(1).random(1000).round() != 0
    times, spans = np.arange(1000) * 1e-3, _Spans()
    for start in range(0, 1000, size):
        spans.add(times[start : start + size], flags[start : start + size], 10)
    edges = np.flatnonzero(np.diff(flags.astype(int), prepend=0, append=0)).reshape(-1, 2)
    begins, ends = times[edges[:, 0]], times[np.minimum(edges[:, 1], 999)]
    np.testing.assert_array_equal(spans.closed(float(times[-1])), np.column_stack((begins, ends - begins)))
    assert spans.total == len(edges)


def test_flag_spans_beyond_the_maximum_become_shares():
    spans, times = _Spans(), np.arange(10_000) * 1e-3
    flags = np.arange(10_000) % 2 == 0
    flags[5000:] = False
    for start in range(0, 10_000, 2500):
        spans.add(times[start : start + 2500], flags[start : start + 2500], 100)
    assert len(spans.closed(10.0)) == spans.MOST < spans.total
    shares = spans.shares
    assert len(shares) == 100
    np.testing.assert_allclose(shares[:50, 2], 0.5)
    np.testing.assert_array_equal(shares[50:, 2], 0.0)
    np.testing.assert_allclose(shares[:, 0], np.arange(100) * 0.1)


def test_long_run_is_drawn_as_cells_that_cover_every_point(tmp_path, monkeypatch):
    whole = np.tile(circle(3142), 40)
    whole["tick"] = np.arange(len(whole))
    whole["time"] = whole["tick"] * 1e-3
    recording = record(tmp_path, whole[:1000], Causality.IMPEDANCE)
    run = _Run(recording)
    assert run.visited is None
    np.testing.assert_allclose(run.points("path"), whole[:1000]["position"] * 1e3)
    recording.rows = whole
    sizes = []
    for most in (300, _Cells.MOST):
        monkeypatch.setattr(_Cells, "MOST", most)
        run = _Run(recording)
        assert run.count == len(whole)
        assert run.visited is not None and len(run.visited.centres) <= most
        sizes.append(run.visited.size)
        points = whole["position"][:3142:10] * 1e3
        distance = np.abs(points[:, None] - run.visited.centres).max(axis=2).min(axis=1)
        assert (distance <= 0.5 * sizes[-1] * (1.0 + 1e-9)).all()
    assert sizes[0] > sizes[1] == 0.125, "cells grow beyond the maximum"
    assert np.ptp(np.hypot(*run.visited.centres.T)) < 0.5
    assert draw(recording) is not None
