from __future__ import annotations

import argparse
import json
import sys
from types import SimpleNamespace

import pytest

from apps.answer import Answer
from apps.bench import command, registry
from apps.bench.outcome import Outcome, Progress
from haptics.errors import ConfigurationError


def _run(*arguments: str) -> Answer:
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    return command.run(parser.parse_args(arguments))


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> dict[str, Outcome]:
    """Put benchmarks in place of the real ones that return what the test puts here."""
    outcomes = {name: Outcome({"rows": [name]}, f"table of {name}") for name in registry.BENCHMARKS}

    def load(name: str) -> SimpleNamespace:
        def run(progress: Progress) -> Outcome:
            progress(0.5, "half of it")
            return outcomes[name]

        return SimpleNamespace(TITLE=f"title of {name}", run=run)

    monkeypatch.setattr(registry, "load", load)
    monkeypatch.setattr("numba.config.DISABLE_JIT", 0)
    return outcomes


def test_the_list_names_them_and_measures_nothing() -> None:
    answer = _run("--list")
    assert list(answer.result["benchmarks"]) == list(registry.BENCHMARKS)
    assert all(name in answer.text for name in registry.BENCHMARKS)


def test_all_of_them_by_name_in_the_result(instant: dict[str, Outcome]) -> None:
    answer = _run()
    assert answer.result == {"benchmarks": {name: outcome.result for name, outcome in instant.items()}}
    assert answer.status == 0 and all(f"table of {name}" in answer.text for name in instant)
    json.dumps(answer.result, allow_nan=False)


def test_only_those_that_are_named(instant: dict[str, Outcome]) -> None:
    assert list(_run("network").result["benchmarks"]) == ["network"]


def test_an_unknown_name_is_the_wrong_request() -> None:
    with pytest.raises(ConfigurationError, match="unknown benchmark 'speed'"):
        _run("speed")


def test_figures_that_cannot_be_trusted_are_no_success(instant: dict[str, Outcome]) -> None:
    instant["kernel"] = Outcome({}, "", "the loops differ.")
    answer = _run()
    assert answer.status == 1 and answer.error == "kernel: the loops differ."


def test_progress_goes_to_a_terminal_only(
    instant: dict[str, Outcome], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _run("kernel")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    _run("kernel")
    output, shown = capsys.readouterr()
    assert output == "" and "half of it" in shown and shown.endswith("\x1b[K")


def test_without_compiled_kernels_there_is_nothing_to_measure(
    instant: dict[str, Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    with pytest.raises(ConfigurationError, match="NUMBA_DISABLE_JIT"):
        _run()
