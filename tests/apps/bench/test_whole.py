from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from apps.bench import history
from apps.bench.whole import loop, sessions, simulation, sweep, tasks
from haptics.errors import ConfigurationError
from haptics.servo.offline import Reduced


def _nothing(done: float, words: str) -> None:
    pass


def test_a_tick_takes_more_than_its_step_and_a_batch_less_than_the_same_alone(
    few_rounds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_ROUNDS", 5)
    monkeypatch.setattr(simulation, "_ROUNDS", 3)
    (tick,) = loop.run(_nothing).result["rows"]
    assert 2.0 < tick["ratio"] < 200.0
    (session,) = simulation.run(_nothing).result["rows"]
    assert session["ratio"] < 0.95
    assert session["real_time_factor"] > 50.0


def test_batch_and_alone_are_the_same_sessions() -> None:
    together, alone = sessions.together(0.05)(), sessions.alone(0.05)()
    assert isinstance(together, list) and isinstance(alone, list)
    assert all(isinstance(one, Reduced) for one in together)
    assert [one.sums.tobytes()[16:] for one in together] == [one.sums[0].tobytes()[16:] for one in alone]


def test_sessions_of_a_sweep_are_simulated(compiled: None) -> None:
    assert 0.0 < sweep.simulate_batch(2, 0) < 60.0


def waits(number: int) -> float:
    time.sleep(0.02)
    return 0.02


def test_tasks_that_only_wait_are_as_many_times_faster_as_there_are_workers() -> None:
    with ThreadPoolExecutor(2) as executor:
        speed = tasks.measure_tasks(executor, 2, waits, 5)
    assert speed.working == pytest.approx(0.02)
    assert speed.overhead < 0.02
    assert 1.3 < speed.speedup < 2.5


def test_many_workers_are_limited_by_who_hands_out() -> None:
    speed = tasks.Speed(working=0.3, overhead=0.003, speedup=2.0)
    assert speed.time(1000, 1) == pytest.approx(303.0)
    assert speed.time(1000, 10) == pytest.approx(30.3)
    assert speed.time(1000, 10_000) == pytest.approx(3.0)
    assert tasks.in_words(7200.0) == "2.0 h"
    assert tasks.in_words(0.5) == "0.50 s"


# --- the history -----------------------------------------------------------------------------------------------------


def test_a_history_grows_and_sets_what_was_before_beside_what_is(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    for ratio in (2.0, 4.0, 3.0):
        line = history.entry({"kernel": {"rows": [{"model": "C", "law": "coulomb", "ratio": ratio, "ns": 1.0}]}})
        history.append(path, line)
    before = history.lines_of(path)
    assert [history.ratios(line["benchmarks"]) for line in before] == [
        {"kernel C coulomb": 2.0},
        {"kernel C coulomb": 4.0},
        {"kernel C coulomb": 3.0},
    ]
    assert before[0]["versions"]["numpy"]
    assert before[0]["machine"]["processors"] >= 1
    now = {"kernel": {"rows": [{"model": "C", "law": "coulomb", "ratio": 9.0}]}}
    assert history.describe(before, now).splitlines()[1].split() == ["kernel", "C", "coulomb", "9.00", "3.00", "3"]


def test_of_ratios_of_one_name_the_first_counts_and_slices_come_after() -> None:
    streams = [{"stream": "udp", "ratio_p999": 1.5, "ratio_tick": 1.1, "slices": [{"ratio_p999": 9.0}]}]
    assert history.ratios({"stream": {"model": "C", "streams": streams}}) == {
        "stream C udp ratio_p999": 1.5,
        "stream C udp ratio_tick": 1.1,
    }


def test_a_line_that_was_cut_short_is_left_out_and_a_wrong_one_named(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    assert history.lines_of(path) == []
    history.append(path, history.entry({}))
    with path.open("ab") as file:
        file.write(b'{"format": 1, "bench')
    assert len(history.lines_of(path)) == 1
    history.append(path, history.entry({"kernel": {}}))
    assert [list(line["benchmarks"]) for line in history.lines_of(path)] == [[], ["kernel"]]
    path.write_bytes(b'{"format": 99}\n' + path.read_bytes())
    with pytest.raises(ConfigurationError, match="line 1"):
        history.lines_of(path)


def test_a_history_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="name another file"):
        history.append(tmp_path / "nowhere" / "history.jsonl", {})
