"""Every run gets a picture, whatever happened in it."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from apps.shared.picture import _Cells, _Run, _Spans, draw, preloading
from apps.shared.theme import LIGHT
from haptics.device import Causality
from haptics.recording.fitness import Fitness
from haptics.recording.recorder import Recorder
from haptics.recording.recording import Recording
from haptics.records import ROW, Status
from haptics.trace import Reader, Trace
from tests.certificates import certificate
from tests.haptics.doubles import make_spec
from tests.sampling import sample


def record(folder: Path, rows: np.ndarray, causality: Causality, result: dict[str, Any] | None = None) -> Recording:
    metadata: dict[str, Any] = {
        "device": asdict(make_spec(causality)),
        "model": "C",
        "rate_hz": 1000.0,
        "configuration": {"law": {"name": "coulomb", "force": 4.0}, "element": {"stiffness": 6000.0}},
    }
    (folder / "trace").unlink(missing_ok=True)
    trace = Trace.create(folder / "trace", capacity=len(rows) + 2)
    count = len(list(folder.iterdir()))
    recorder = Recorder(folder / f"run-{count}", metadata)
    recorder.follow(Reader(trace))
    for row in rows:
        trace.append(row)
    recorder.drain()
    recorder.close(result or {}, complete=True)
    return Recording(recorder.folder)


def circle(count: int) -> np.ndarray:
    rows = np.zeros(count, ROW)
    t = np.arange(count) * 1e-3
    rows["tick"], rows["time"] = np.arange(count), t
    rows["position"] = 0.05 * np.stack((np.cos(2 * t), np.sin(2 * t)), axis=1)
    rows["command"] = rows["force"] = 4.0 * np.stack((np.sin(2 * t), -np.cos(2 * t)), axis=1)
    rows["friction_force"] = -rows["command"]
    rows["sticking"] = np.sin(5 * t) > 0.5
    rows["period_error"], rows["tick_time"] = 1e-5, 3e-5
    return rows


@pytest.mark.parametrize("causality", sample(list(Causality), 2))
@pytest.mark.parametrize("count", [1, 2, 3000])
def test_a_picture_is_drawn(tmp_path: Path, causality: Causality, count: int) -> None:
    path = draw(record(tmp_path, circle(count), causality))
    assert path is not None
    assert Path(path).read_bytes().startswith(b"\x89PNG")


def test_samples_that_were_no_numbers_do_not_stop_it(tmp_path: Path) -> None:
    rows = circle(2000)
    rows["position"][500:600] = np.nan
    rows["force"][500:600] = np.inf
    assert draw(record(tmp_path, rows, Causality.ADMITTANCE)) is not None


def test_a_run_that_never_moved_has_a_picture(tmp_path: Path) -> None:
    rows = circle(2000)
    rows["position"] = rows["command"] = rows["friction_force"] = 0.0
    rows["sticking"] = 1
    assert draw(record(tmp_path, rows, Causality.IMPEDANCE)) is not None


def test_a_run_without_ticks_has_no_picture(tmp_path: Path) -> None:
    assert draw(record(tmp_path, circle(0), Causality.IMPEDANCE)) is None


def words_of(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text))


@pytest.fixture
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Figure]:
    """A function that draws some rows and returns the figure."""
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: figures.append(figure))

    def picture(rows: np.ndarray, **result: Any) -> Figure:
        draw(record(tmp_path, rows, Causality.IMPEDANCE, result))
        return figures[-1]

    return picture


def test_the_picture_names_the_flags_that_occurred(drawn: Callable[..., Figure]) -> None:
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
def test_no_peak_of_the_energy_is_lost_and_the_limit_is_shown_when_it_is_near(
    drawn: Callable[..., Figure], peak: float, limit_is_drawn: bool
) -> None:
    rows = circle(50_000)
    rows["injected_energy"][31_417] = 1e-3 * peak
    rows["injected_energy"][100] = np.nan
    figure = drawn(rows, limits={"max_energy": 0.1})
    (axes,) = (axes for axes in figure.axes if axes.get_ylabel() == "energy [mJ]")
    assert max(line.get_ydata().max() for line in axes.lines[:1]) == pytest.approx(peak)  # type: ignore[union-attr]
    assert (len(axes.lines) == 2) == limit_is_drawn
    assert axes.get_ylim()[1] > max(peak, 100.0 * limit_is_drawn)
    assert f"at most {peak:.3g} of 100 mJ" in words_of(figure)


@pytest.mark.parametrize("count", [3000, 50_001])
def test_lines_keep_the_extremes_of_every_time_course(drawn: Callable[..., Figure], count: int) -> None:
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


def test_the_histograms_count_every_tick(drawn: Callable[..., Figure]) -> None:
    rows = circle(3000)
    rows["period_error"][:7], rows["tick_time"][7:9] = 0.0, 1e-3
    (axes,) = (axes for axes in drawn(rows).axes if axes.get_ylabel() == "ticks")
    late, took = (patch.get_data().values for patch in axes.patches)  # type: ignore[attr-defined]
    assert sorted(late[late > 0]) == [7, 2993]
    assert sorted(took[took > 0]) == [2, 2998]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["10⁻¹", "10⁰", "10¹", "10²", "10³", "10⁴"]


def test_modules_are_imported_ahead_only_while_that_is_permitted(monkeypatch: pytest.MonkeyPatch) -> None:
    permitted, imported = threading.Event(), list[str]()

    def note(name: str) -> None:
        imported.append(name)
        if len(imported) == 3:
            permitted.clear()

    monkeypatch.setattr("apps.shared.picture.importlib.import_module", note)
    permitted.set()
    with preloading(permitted):
        while permitted.is_set():
            time.sleep(1e-3)
    assert len(imported) == 3
    with preloading(permitted):
        pass
    assert len(imported) == 3


def test_a_session_draws_its_picture_without_pyplot(tmp_path: Path) -> None:
    """It would register a window system and takes longer to load than the whole picture takes to draw."""
    program = (
        "import sys; from apps.cli import main\n"
        f"assert main(['run', '--device', 'virtual-joystick', '--duration', '0.1', '--clock', 'off', '--headless', "
        f"'--record', {str(tmp_path)!r}]) == 0\n"
        "assert 'matplotlib.figure' in sys.modules\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
    (picture,) = tmp_path.glob("*/picture.png")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_picture_has_the_verdict(drawn: Callable[..., Figure]) -> None:
    rows = circle(3000)
    assert "no certificate" in words_of(drawn(rows))
    rows["status"][:1000] = Status.STARTED_LATE
    timing = certificate(rows, 3000, 3000, 1e-3)
    for fitness, word in ((Fitness(late_share=0.5), "fit\n"), (Fitness(), "UNFIT: 33.3 % of the ticks")):
        reasons = fitness.judge(timing)
        text = words_of(drawn(rows, certificate={**timing, "fit": not reasons, "unfit_because": reasons}))
        assert word in text
        assert "3000 ticks, 0 skipped, 1000 late, 0 lost" in text
        assert "computation time p50 30 µs" in text


@pytest.mark.parametrize(
    "kind",
    ["link", "link to nowhere", "file"],
)
def test_a_picture_is_never_written_through_a_link_nor_over_a_file_of_somebody_s(tmp_path: Path, kind: str) -> None:
    """A recording may come from anybody; its picture.png may point anywhere."""
    own = tmp_path / "thesis.tex"
    own.write_text("years of work")
    recording = record(tmp_path, circle(300), Causality.IMPEDANCE)
    picture = recording.folder / "picture.png"
    if kind == "file":
        picture.write_text("years of work")
    else:
        picture.symlink_to(own if kind == "link" else tmp_path / "nowhere")
    with pytest.raises(FileExistsError, match=r"picture\.png is a"):
        draw(recording)
    assert own.read_text() == "years of work"
    assert picture.is_symlink() == (kind != "file")
    assert not (tmp_path / "nowhere").exists()
    picture.unlink()
    for _ in range(2):  # its own it replaces
        assert draw(recording) == str(picture)
        assert picture.read_bytes().startswith(b"\x89PNG")
    assert len([path for path in recording.folder.iterdir() if "picture" in path.name]) == 1


def test_friction_has_the_colour_that_it_has_in_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    colours: dict[str, str] = {}
    plot = Axes.plot

    def noted(self: Axes, *arguments: Any, **options: Any) -> Any:
        colours[str(options.get("label"))] = options["color"]
        return plot(self, *arguments, **options)

    monkeypatch.setattr(Axes, "plot", noted)
    draw(record(tmp_path, circle(500), Causality.ADMITTANCE))
    assert colours["friction |f|"] == LIGHT.friction
    assert colours["measured |h|"] == LIGHT.force
    assert (colours["path, slipping"], colours["sticking"]) == (LIGHT.motion, LIGHT.stick)


@pytest.mark.parametrize("size", [1, 7, 100, 1000])
def test_stretches_of_a_flag_do_not_depend_on_the_size_of_the_pieces(size: int) -> None:
    flags = np.random.default_rng(1).random(1000).round() != 0
    times, spans = np.arange(1000) * 1e-3, _Spans()
    for start in range(0, 1000, size):
        spans.add(times[start : start + size], flags[start : start + size], 10)
    edges = np.flatnonzero(np.diff(flags.astype(int), prepend=0, append=0)).reshape(-1, 2)
    begins, ends = times[edges[:, 0]], times[np.minimum(edges[:, 1], 999)]
    np.testing.assert_array_equal(spans.closed(float(times[-1])), np.column_stack((begins, ends - begins)))
    assert spans.total == len(edges)


def test_more_stretches_than_are_kept_are_told_by_their_share() -> None:
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


def test_cells_cover_every_point_and_become_larger_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(2).normal(scale=20.0, size=(5000, 2))
    cells = _Cells()
    for piece in np.array_split(points, 9):
        cells.add(piece)
    assert cells.size == 0.125
    monkeypatch.setattr(_Cells, "MOST", 300)
    coarse = _Cells()
    for piece in np.array_split(points, 9):
        coarse.add(piece)
    assert coarse.size > 1.0
    for one in (cells, coarse):
        distance = np.abs(points[:500, None] - one.centres).max(axis=2).min(axis=1)
        assert (distance <= 0.5 * one.size * (1.0 + 1e-9)).all()
    assert len(coarse.centres) <= 300


def test_long_run_is_drawn_where_it_has_been_and_not_along_chords(tmp_path: Path) -> None:
    whole = np.tile(circle(3142), 40)
    whole["tick"] = np.arange(len(whole))
    whole["time"] = whole["tick"] * 1e-3
    recording = record(tmp_path, whole[:1000], Causality.IMPEDANCE)
    recording.rows = whole
    run = _Run.of(recording)
    assert run.visited is not None
    assert run.count == len(whole)
    assert np.ptp(np.hypot(*run.visited.centres.T)) < 0.5
    assert draw(recording) is not None


def test_what_is_kept_for_a_picture_does_not_grow_with_the_run(tmp_path: Path) -> None:
    recording = record(tmp_path, circle(1000), Causality.ADMITTANCE)

    def kept(copies: int) -> int:
        recording.rows = np.tile(circle(1000), copies)
        return sum(part.nbytes for parts in _Run.of(recording)._points.values() for part in parts)

    assert kept(800) < 1.1 * kept(200)


def test_short_run_is_drawn_as_a_line(tmp_path: Path) -> None:
    run = _Run.of(record(tmp_path, circle(3000), Causality.IMPEDANCE))
    assert run.visited is None
    np.testing.assert_allclose(run.points("path"), circle(3000)["position"] * 1e3)
