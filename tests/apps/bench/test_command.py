from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from dataclasses import replace
from typing import Any

import pytest

from apps.bench import command, history
from apps.bench.outcome import CannotMeasure, Stop, table
from apps.shared.command import Answer
from haptics.errors import ConfigurationError

SHORT = {name: one.default for name, one in command.BENCHMARKS.items() if one.default is not None}


def run(*arguments):
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    return command.run(parser.parse_args(arguments))


@pytest.fixture
def instant(monkeypatch):
    """Replace the benchmarks by functions that return the outcomes of this dictionary at once."""
    outcomes: dict[str, Any] = {name: Answer({"rows": [name]}, f"table of {name}") for name in command.BENCHMARKS}

    def load(name):
        def run(progress, **options):
            progress(0.5, "half of it")
            if isinstance(outcomes[name], CannotMeasure):
                raise outcomes[name]
            return replace(outcomes[name], result=outcomes[name].result | {"options": options})

        return run

    monkeypatch.setattr(command, "load", load)
    monkeypatch.setattr("numba.config.DISABLE_JIT", 0)
    return outcomes


def test_list_shows_names_and_titles_without_measuring():
    answer = run("--list")
    assert list(answer.result["benchmarks"]) == list(command.BENCHMARKS)
    for name, entry in answer.result["benchmarks"].items():
        assert name in answer.text and entry["title"] and entry["title"] in answer.text


def test_result_holds_all_short_benchmarks_by_name(instant):
    answer = run()
    assert answer.result == {
        "benchmarks": {name: {"rows": [name], "options": options} for name, options in SHORT.items()}
    }
    assert set(SHORT) == set(command.BENCHMARKS) - {"soak", "hours", "stream", "triggers", "script"}
    assert answer.status == 0 and all(f"table of {name}" in answer.text for name in SHORT)
    json.dumps(answer.result, allow_nan=False)


def test_only_named_benchmarks_run_once_each_in_the_given_order(instant):
    benchmarks = run("soak", "network", "soak").result["benchmarks"]
    assert benchmarks == {name: {"rows": [name], "options": {}} for name in ("soak", "network")}
    assert list(benchmarks) == ["soak", "network"]


def test_single_benchmark_reports_at_the_top_level_and_receives_its_options(instant):
    result = run("servo", "--rate", "500").result
    assert result == {"rows": ["servo"], "options": {"rate": 500.0}, "benchmarks": result["benchmarks"]}
    assert result["benchmarks"] == {"servo": {"rows": ["servo"], "options": {"rate": 500.0}}}


def test_options_reach_the_benchmarks_that_take_them(instant):
    result = run("kernel", "servo", "soak", "--duration", "5", "--slice", "1", "--record", "x").result
    assert {name: entry["options"] for name, entry in result["benchmarks"].items()} == {
        "kernel": {},
        "servo": {"duration": 5.0, "slice": 1.0},
        "soak": {"duration": 5.0, "record": "x"},
    }


@pytest.mark.parametrize("option", command.OPTIONS, ids=lambda option: option.name)
def test_option_without_a_benchmark_for_it_is_refused(option):
    assert set(option.takers) <= set(command.BENCHMARKS)
    for names in ([], ["kernel"], ["kernel", "network"]):
        with pytest.raises(ConfigurationError, match=rf"--{option.name} goes with the benchmark {option.takers[0]}"):
            run(*names, f"--{option.name}", "1")


def test_unmeasurable_benchmark_is_left_out_unless_named(instant):
    instant["servo"] = CannotMeasure("cyclictest is not installed.")
    answer = run()
    assert answer.status == 0 and "left out: cyclictest is not installed." in answer.text
    assert answer.result["benchmarks"]["servo"] == {"left_out": "cyclictest is not installed."}
    with pytest.raises(ConfigurationError, match="not installed"):
        run("servo")


def test_unknown_name_is_refused_with_the_nearest_one():
    with pytest.raises(ConfigurationError, match=r"unknown benchmark 'kernels'\. Did you mean 'kernel'\?"):
        run("kernels")


def test_untrustworthy_figures_fail_the_command(instant):
    instant["kernel"] = Answer({}, "", error="the loops differ.")
    answer = run()
    assert answer.status == 1 and answer.error == "kernel: the loops differ."


def test_progress_is_shown_on_a_terminal_only(instant, capsys, monkeypatch):
    run("kernel")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run("kernel")
    output, shown = capsys.readouterr()
    assert output == "" and "half of it" in shown and shown.endswith("\x1b[K")


def test_uncompiled_kernels_are_not_measured(instant, monkeypatch):
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    with pytest.raises(ConfigurationError, match="NUMBA_DISABLE_JIT"):
        run()


def test_table_aligns_columns_and_numbers_have_three_digits_without_an_exponent():
    lines = table([("model", "ns"), ("A", 31.72), ("karnopp", 12345.6), ("B", 0.00734), ("D", 7), ("C", None)])
    assert lines.splitlines() == [
        "model       ns",
        "A         31.7",
        "karnopp  12346",
        "B        0.007",
        "D            7",
        "C            -",
    ]


# --- history ---------------------------------------------------------------------------------------------------------


def test_history_grows_and_is_shown_beside_the_new_results(instant, tmp_path):
    path = tmp_path / "history.jsonl"
    for ratio in (2.0, 4.0, 3.0):
        instant["kernel"] = Answer({"rows": [{"model": "C", "law": "coulomb", "ratio": ratio, "ns": 1.0}]}, "")
        run("kernel", "--history", str(path))
    before = history.lines_of(path)
    assert [history.ratios(line["benchmarks"]) for line in before] == [
        {"kernel C coulomb": ratio} for ratio in (2.0, 4.0, 3.0)
    ]
    assert before[0]["versions"]["numpy"]
    assert before[0]["machine"]["processors"] >= 1
    streams = [{"stream": "udp", "ratio_p999": 1.5, "ratio_tick": 1.1, "slices": [{"ratio_p999": 9.0}]}]
    assert history.ratios({"stream": {"model": "C", "streams": streams}}) == {
        "stream C udp ratio_p999": 1.5,
        "stream C udp ratio_tick": 1.1,
    }
    instant["kernel"] = Answer({"rows": [{"model": "C", "law": "coulomb", "ratio": 9.0}]}, "")
    answer = run("kernel", "--history", str(path))
    assert answer.text.splitlines()[-1].split() == ["kernel", "C", "coulomb", "9.00", "3.00", "3"]
    assert answer.result["runs"] == len(history.lines_of(path)) == 4


def test_truncated_history_line_is_skipped_and_other_errors_are_reported(tmp_path):
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
    with pytest.raises(ConfigurationError, match="name another file"):
        history.append(tmp_path / "nowhere" / "history.jsonl", {})


# --- interruption ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stop_signal_is_deferred_until_the_check(number):
    before = signal.getsignal(number)
    with Stop() as stop:
        stop.check()
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        with pytest.raises(KeyboardInterrupt):
            stop.check()
        with pytest.raises(KeyboardInterrupt), stop.at_once():
            pytest.fail("the pending request was lost")
    assert signal.getsignal(number) is before


def test_immediate_stop_interrupts_only_once():
    reached = []
    with Stop() as stop:
        with pytest.raises(KeyboardInterrupt), stop.at_once():
            try:
                os.kill(os.getpid(), signal.SIGINT)
                reached.append("after the first")
            finally:
                os.kill(os.getpid(), signal.SIGINT)
                reached.append("after the second")
        assert reached == ["after the second"]
