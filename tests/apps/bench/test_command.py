from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from apps.bench import command, registry
from apps.bench.outcome import CannotMeasure, Outcome, Progress
from apps.shared.answer import Answer
from haptics.errors import ConfigurationError


def _run(*arguments: str) -> Answer:
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    return command.run(parser.parse_args(arguments))


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Put benchmarks in place of the real ones that return what the test puts here."""
    outcomes: dict[str, Any] = {name: Outcome({"rows": [name]}, f"table of {name}") for name in registry.BENCHMARKS}

    def load(name: str) -> SimpleNamespace:
        def run(progress: Progress, **options: object) -> Outcome:
            progress(0.5, "half of it")
            if isinstance(outcomes[name], CannotMeasure):
                raise outcomes[name]
            return replace(outcomes[name], result=outcomes[name].result | {"options": options})

        return SimpleNamespace(TITLE=f"title of {name}", run=run)

    monkeypatch.setattr(registry, "load", load)
    monkeypatch.setattr("numba.config.DISABLE_JIT", 0)
    return outcomes


def test_the_list_names_them_and_measures_nothing() -> None:
    answer = _run("--list")
    assert list(answer.result["benchmarks"]) == list(registry.BENCHMARKS)
    assert all(name in answer.text for name in registry.BENCHMARKS)


def test_all_short_ones_by_name_in_the_result(instant: dict[str, Any]) -> None:
    answer = _run()
    assert answer.result == {
        "benchmarks": {name: {"rows": [name], "options": options} for name, options in registry.UNASKED.items()}
    }
    assert answer.status == 0 and all(f"table of {name}" in answer.text for name in registry.UNASKED)
    json.dumps(answer.result, allow_nan=False)


def test_only_those_that_are_named(instant: dict[str, Any]) -> None:
    assert _run("network", "soak").result == {
        "benchmarks": {name: {"rows": [name], "options": {}} for name in ("network", "soak")}
    }


def test_one_that_is_named_alone_also_answers_at_the_top_and_gets_its_options(instant: dict[str, Any]) -> None:
    result = _run("servo", "--rate", "500").result
    assert result == {"rows": ["servo"], "options": {"rate": 500.0}, "benchmarks": result["benchmarks"]}
    assert result["benchmarks"] == {"servo": {"rows": ["servo"], "options": {"rate": 500.0}}}


def test_what_cannot_be_measured_is_left_out_unless_it_was_named(instant: dict[str, Any]) -> None:
    instant["servo"] = CannotMeasure("cyclictest is not installed.")
    answer = _run()
    assert answer.status == 0 and "left out: cyclictest is not installed." in answer.text
    assert answer.result["benchmarks"]["servo"] == {"left_out": "cyclictest is not installed."}
    with pytest.raises(ConfigurationError, match="not installed"):
        _run("servo")


def test_an_option_that_nothing_takes_is_the_wrong_request(instant: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="--rate goes with"):
        _run("kernel", "--rate", "500")


def test_an_unknown_name_is_the_wrong_request() -> None:
    with pytest.raises(ConfigurationError, match="unknown benchmark 'speed'"):
        _run("speed")


def test_figures_that_cannot_be_trusted_are_no_success(instant: dict[str, Any]) -> None:
    instant["kernel"] = Outcome({}, "", "the loops differ.")
    answer = _run()
    assert answer.status == 1 and answer.error == "kernel: the loops differ."


def test_progress_goes_to_a_terminal_only(
    instant: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _run("kernel")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    _run("kernel")
    output, shown = capsys.readouterr()
    assert output == "" and "half of it" in shown and shown.endswith("\x1b[K")


def test_without_compiled_kernels_there_is_nothing_to_measure(
    instant: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    with pytest.raises(ConfigurationError, match="NUMBA_DISABLE_JIT"):
        _run()
