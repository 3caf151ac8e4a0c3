"""Sweeps: designs, outcomes, executors, kills, folders and the comparison with the stability bound."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.cli import main
from apps.sweep import running
from apps.sweep.design import OUTCOMES, read_sweep
from apps.sweep.results import LINES, Results, agreement, table_of
from apps.sweep.running import run_sweep, simulate_jobs
from devices import create_device
from haptics.errors import ConfigurationError
from haptics.servo.offline import run_offline
from tests.apps.sweep.sweeps import SMALL, written
from tests.processes import ROOT
from tests.system.parallel.commands import haptics

HERE = "tests.apps.sweep.sweeps"


def ran(path, out, kind="threads", count=1):
    """Run a sweep and return its table."""
    sweep = read_sweep(path)
    results = Results(out, sweep)
    try:
        run_sweep(sweep, results, kind, count, lambda done, failed, total: None)
    finally:
        results.close()
    return table_of(sweep, results)


def require_equal(one, other):
    assert list(one) == list(other)
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


def test_grid_has_every_combination_and_a_seed_for_each_job(tmp_path):
    sweep = read_sweep(written(tmp_path, "[sweep]", "[sweep]\nrepeats = 2"))
    jobs = list(sweep.jobs())
    assert len(jobs) == sweep.count == 18
    assert len({(job.point["law.force"], job.point["element.stiffness"]) for job in jobs}) == 9
    assert sorted({job.point["element.stiffness"] for job in jobs}) == pytest.approx([1000.0, 2000.0, 4000.0])
    assert len({job.seed for job in jobs}) == 18
    assert [job.number for job in jobs] == list(range(18))


@pytest.mark.parametrize("design", ["random", "sobol"])
def test_drawn_points_fill_the_axes_and_do_not_depend_on_their_number(design, tmp_path):
    texts = [f'[sweep]\ndesign = "{design}"\npoints = {count}' for count in (8, 16)]
    few, many = ([job.point for job in read_sweep(written(tmp_path, "[sweep]", text)).jobs()] for text in texts)
    assert few == many[:8]
    stiffness = sorted(math.log(point["element.stiffness"] / 1000.0) / math.log(4.0) for point in many)
    assert 0.0 <= stiffness[0] < 0.3 and 0.7 < stiffness[-1] <= 1.0
    assert {point["law.force"] for point in many} == {1.0, 2.0, 4.0}


def test_key_of_a_result_depends_on_the_session(tmp_path):
    one = read_sweep(written(tmp_path))
    longer = read_sweep(written(tmp_path, "duration = 0.4", "duration = 0.5"))
    other = read_sweep(written(tmp_path, "force = 2.0\n\n", 'force = 2.0\n\n[hand]\nname = "minimum-jerk"\n\n'))
    keys = {next(iter(sweep.jobs())).key(sweep.common) for sweep in (one, longer, other)}
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("values = [1.0, 2.0, 4.0]", "values = []", "either values, or start and stop"),
        ("values = [1.0, 2.0, 4.0]", "start = 2.0\nstop = 1.0", "must be less than stop"),
        ("values = [1.0, 2.0, 4.0]", "values = [-1.0]", "law.force"),
        ('setting = "law.force"', 'setting = "law.farce"', "farce"),
        ('setting = "law.force"', 'setting = "servo.priority"', "must be a setting of"),
        ('setting = "law.force"', 'setting = "element.stiffness"', "twice"),
        ("duration = 0.4", "duration = 0.05", "must be less than sweep.duration"),
        ("duration = 0.4", 'outcomes = ["stabel"]\nduration = 0.4', "stable"),
        ("duration = 0.4", 'function = "nowhere:f"\nduration = 0.4', "cannot be loaded"),
        ("start = 1000.0", "start = 0.0", "greater than 0 on a log scale"),
        ("count = 3", "count = 1", "count"),
        ("count = 3", "count = 90000\nvalues = 3", "values"),
        ("[session]", "[sesion]", "session"),
    ],
)
def test_design_mistakes_are_named(old, new, words, tmp_path):
    with pytest.raises(ConfigurationError, match=words):
        read_sweep(written(tmp_path, old, new))


def rows_of(config, rendered):
    """Return the rows of a session of 2 s."""
    found = run_offline(
        lambda clock: create_device(config.device, config.device_settings, clock=clock),
        rendered,
        2.0,
        limits=config.limits,
        keep_rows=True,
    ).rows
    assert found is not None
    return found


def test_outcomes_are_those_of_the_recorded_rows(tmp_path):
    sweep = read_sweep(written(tmp_path, "duration = 0.4", "duration = 2.0"))
    job = list(sweep.jobs())[4]
    found = simulate_jobs(sweep, [job])[0]["outcomes"]
    config = sweep.config(job)
    rows = rows_of(config, config.built_element)
    rows = rows[rows["time"] >= 0.1]
    sliding = rows[rows["sticking"] == 0]
    force = np.hypot(*sliding["friction_force"].T)
    direction = sliding["sliding_velocity"] / np.hypot(*sliding["sliding_velocity"].T)[:, None]
    felt = np.sum(sliding["hand_force"] * direction, axis=1)
    slope = np.polyfit(rows["time"], rows["position"], 1)[0]
    assert set(found) == set(OUTCOMES)
    assert found["stick_fraction"] == pytest.approx(1.0 - len(sliding) / len(rows))
    assert found["friction_mean_n"] == pytest.approx(force.mean())
    assert found["friction_std_n"] == pytest.approx(force.std(), abs=1e-6)
    assert found["felt_mean_n"] == pytest.approx(np.nanmean(felt))
    assert found["felt_error"] == pytest.approx(np.nanmean(felt) / force.mean() - 1.0)
    assert found["drift_m_per_s"] == pytest.approx(np.hypot(*slope))
    assert found["path_m"] == pytest.approx(np.hypot(*np.diff(rows["position"], axis=0).T).sum())
    assert found["breakaway_error"] == pytest.approx(np.hypot(*rows["friction_force"].T).max() / 2.0 - 1.0)
    cosine = np.sum(sliding["friction_force"] * direction, axis=1) / force
    assert found["direction_error_deg"] == pytest.approx(np.degrees(np.arccos(np.clip(cosine, -1, 1)).mean()), abs=1e-5)
    both = (rows["sticking"][1:] != 0) & (rows["sticking"][:-1] != 0)
    crept = np.hypot(*np.diff(rows["proxy"], axis=0)[both].sum(axis=0))
    assert found["creep_m_per_s"] == pytest.approx(crept / (1e-3 * np.count_nonzero(rows["sticking"])), abs=1e-12)
    assert found["injected_energy_j"] == rows["injected_energy"].max()
    assert found["largest_command"] == pytest.approx(np.hypot(*rows["command"].T).max())
    assert found["flags"] == int(np.bitwise_or.reduce(rows["status"]))


def test_scenes_are_swept_by_name(tmp_path):
    text = SMALL.replace("duration = 0.4", "duration = 2.0").replace('[law]\nname = "coulomb"\nforce = 2.0', "")
    text = text.replace('"law.force"', '"session.scene"').replace('"element.stiffness"', '"hand.stiffness"')
    text = text.replace("stop = 4000.0", "stop = 2000.0")
    sweep = read_sweep(written(tmp_path, "[1.0, 2.0, 4.0]", '["border", "ice-wood-rubber"]', text))
    job = list(sweep.jobs())[3]
    (found,) = simulate_jobs(sweep, [job])
    config = sweep.config(job)
    rows = rows_of(config, config.program)
    assert len(np.unique(rows["region"])) > 1
    forces = np.hypot(*rows["friction_force"][rows["time"] >= 0.1].T)
    assert found["outcomes"]["friction_max_n"] == forces.max()
    assert found["outcomes"]["breakaway_error"] <= 1e-9


def test_creep_of_an_element_is_measured(tmp_path):
    """Dahl's model creeps where model C holds, given velocities whose sum is the motion."""
    creeps = {}
    for model in ("C", "dahl"):
        text = SMALL.replace('model = "C"', f'model = "{model}"').replace("duration = 0.4", "duration = 3.0")
        text = text.replace('name = "virtual-joystick"', 'name = "virtual-joystick"\nvelocity_estimator = "difference"')
        sweep = read_sweep(written(tmp_path, 'setting = "element.stiffness"', 'setting = "hand.stiffness"', text))
        (found,) = simulate_jobs(sweep, list(sweep.jobs())[6:7])
        creeps[model] = found["outcomes"]["creep_m_per_s"]
    assert creeps["C"] < 1e-15
    assert creeps["dahl"] > 1e-4


def test_custom_function_receives_the_rows(tmp_path):
    path = written(
        tmp_path, "duration = 0.4", f'duration = 0.4\noutcomes = ["stable"]\nfunction = "{HERE}:largest_force"'
    )
    table = ran(path, tmp_path / "out")
    assert list(table) == ["law.force", "element.stiffness", "seed", "stable", "largest_force_n", "rows"]
    assert (table["rows"] == 400).all()
    assert (table["largest_force_n"] > 0.0).all()


def test_threads_and_processes_give_equal_results(tmp_path):
    path = written(tmp_path)
    one = ran(path, tmp_path / "one")
    require_equal(one, ran(path, tmp_path / "threads", "threads", 3))
    require_equal(one, ran(path, tmp_path / "processes", "processes", 2))


def test_dask_cluster_gives_equal_results(tmp_path):
    pytest.importorskip("distributed")
    path = written(tmp_path)
    options = ("--json", "--cluster", "local", "--workers", "2")
    done = haptics("sweep", path, "--out", tmp_path / "dask", *options)
    found = np.load(json.loads(done.stdout)["results"])
    require_equal(ran(path, tmp_path / "one"), {name: found[name] for name in found.files})


def test_failing_job_is_reported_and_the_others_run(tmp_path, capsys):
    path = written(tmp_path, "duration = 0.4", f'duration = 0.4\nfunction = "{HERE}:fails_at_four"')
    text = path.read_text().replace("values = [1.0, 2.0, 4.0]", "values = [1.0, 4.0]")
    path.write_text(text.replace("duration = 0.4", "duration = 1.5"))
    assert main(["sweep", str(path), "--out", str(tmp_path / "out"), "--executor", "threads"]) == 0
    out = capsys.readouterr().out
    assert "3 of 6 jobs done" in out
    assert "law.force = 4.0" in out and "ZeroDivisionError: unexpected" in out


def test_killed_worker_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTICS_TEST_MARK", str(tmp_path / "mark"))
    path = written(tmp_path, "duration = 0.4", f'duration = 0.4\nfunction = "{HERE}:kills_its_worker_once"')
    table = ran(path, tmp_path / "out", "processes", 2)
    assert (tmp_path / "mark").exists()
    assert table["kills_its_worker_once"].tolist() == [400.0] * 9


def test_killed_and_resumed_sweep_equals_an_undisturbed_one(tmp_path):
    """It is killed twice at random moments, and the last line is cut at a random byte."""
    path = written(tmp_path, "[sweep]", "[sweep]\nrepeats = 120")
    out, moments = tmp_path / "killed", np.random.default_rng(1)
    command = [sys.executable, "-m", "apps", "sweep", str(path), "--out", str(out), "--executor", "threads"]
    kept = 0
    for _ in range(2):
        wanted = kept + int(moments.integers(1, 250))
        with subprocess.Popen([*command, "--workers", "1"], cwd=ROOT, stderr=subprocess.DEVNULL) as process:
            latest = time.monotonic() + 60.0
            while lines_in(out) < wanted and process.poll() is None and time.monotonic() < latest:
                time.sleep(0.0005)
            time.sleep(float(moments.uniform(0.0, 0.02)))
            os.kill(process.pid, signal.SIGKILL)
        before, kept = kept, lines_in(out)
        assert before < kept < 1080
        whole = (out / LINES).read_bytes()
        with (out / LINES).open("ab") as file:
            file.write(whole[: int(moments.integers(0, whole.index(b"\n")))])
    resumed = ran(path, out)
    assert lines_in(out) == 1080
    require_equal(ran(path, tmp_path / "whole"), resumed)


def lines_in(folder):
    with contextlib.suppress(FileNotFoundError):
        return (folder / LINES).read_bytes().count(b"\n")
    return 0


def test_folder_of_another_sweep_is_refused(tmp_path):
    ran(written(tmp_path), tmp_path / "out")
    with pytest.raises(ConfigurationError, match="results of another sweep"):
        ran(written(tmp_path, "settle = 0.1", "settle = 0.2"), tmp_path / "out")


def test_longer_axis_keeps_the_results(tmp_path):
    """The seed of a job depends on its place: a grid with the same last axis keeps its results."""
    ran(written(tmp_path), tmp_path / "out")
    before = lines_in(tmp_path / "out")
    table = ran(written(tmp_path, "[1.0, 2.0, 4.0]", "[1.0, 2.0, 4.0, 5.0]"), tmp_path / "out")
    assert (before, lines_in(tmp_path / "out"), len(table["seed"])) == (9, 12, 12)


def test_folder_is_locked_by_one_program(tmp_path):
    sweep = read_sweep(written(tmp_path))
    results = Results(tmp_path / "out", sweep)
    with pytest.raises(ConfigurationError, match="another program runs this sweep"):
        Results(tmp_path / "out", sweep)
    results.close()


def test_damaged_line_of_results_is_named(tmp_path):
    sweep = read_sweep(written(tmp_path))
    Results(tmp_path / "out", sweep).close()
    (tmp_path / "out" / LINES).write_text(f'{{"key": "{"a" * 32}", "outcomes": {{}}}}\n[1]\n')
    with pytest.raises(ConfigurationError, match="line 2"):
        Results(tmp_path / "out", sweep)


def test_example_runs_from_the_command_line(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    out = tmp_path / "out"
    text = (ROOT / "examples" / "sweeps" / "quick.toml").read_text(encoding="utf-8")
    path = written(tmp_path, "count = 12", "count = 4", text)
    assert main(["sweep", str(path), "--out", str(out), "--executor", "threads", "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (answer["jobs"], answer["done"], answer["new"], answer["failed"]) == (40, 40, 40, 0)
    assert Path(answer["picture"]).read_bytes().startswith(b"\x89PNG")
    frame = pandas.read_parquet(answer["files"][1])
    assert len(frame) == 40 and frame["friction_mean_n"].to_numpy() == pytest.approx(3.0, abs=1e-9)
    assert main(["sweep", str(path), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["new"] == 0


def test_sessions_and_bound_agree_except_at_the_border(tmp_path):
    """The study of the documentation, coarser, at two delays."""
    text = (ROOT / "examples" / "sweeps" / "stability.toml").read_text(encoding="utf-8")
    path = written(tmp_path, "[0.0, 0.001, 0.003]", "[0.001, 0.003]", text.replace("count = 25", "count = 9"))
    table, sweep = ran(path, tmp_path / "out"), read_sweep(path)
    found = agreement(sweep, table)
    assert found is not None
    assert (found["cells"], found["inside"], found["loud"]) == (162, 0, 0)
    assert found["agree"] >= 155
    assert 40 < np.count_nonzero(table["stable"]) < 120
    stable = table["stable"] == 1
    assert np.median(table["buzz"][~stable]) > 3.0 * np.median(table["buzz"][stable])
    table["stable"][:] = 1 - table["stable"]
    turned = agreement(sweep, table)
    assert turned is not None
    assert turned["agree"] == 162 - found["agree"]
    assert turned["inside"] > 50


def test_random_design_is_not_compared_with_the_bound(tmp_path):
    path = written(tmp_path, "[sweep]", '[sweep]\ndesign = "random"\npoints = 4')
    assert agreement(read_sweep(path), ran(path, tmp_path / "out")) is None


def test_dying_workers_are_replaced_a_limited_number_of_times(tmp_path, monkeypatch):
    """An executor of threads cannot be broken: the exception replaces a death."""
    run_jobs, left = running.run_jobs, iter(range(running.MOST_LOSSES))

    def dying(*arguments):
        if next(left, None) is not None:
            raise BrokenExecutor
        return run_jobs(*arguments)

    monkeypatch.setattr(running, "run_jobs", dying)
    path = written(tmp_path)
    with pytest.raises(ConfigurationError, match="died 5 times"):
        ran(path, tmp_path / "out", "threads", 2)
