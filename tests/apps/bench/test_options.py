from __future__ import annotations

import argparse

import pytest

from apps.bench import options
from apps.bench.registry import BENCHMARKS, UNASKED
from haptics.errors import ConfigurationError


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    options.add(parser)
    return parser.parse_args(arguments)


def test_options_go_to_the_benchmarks_that_take_them() -> None:
    asked = parsed("--duration", "5", "--slice", "1", "--record", "x")
    assert options.given(asked, ["kernel", "servo", "soak"]) == {
        "kernel": {},
        "servo": {"duration": 5.0, "slice": 1.0},
        "soak": {"duration": 5.0, "record": "x"},
    }


@pytest.mark.parametrize("option", options.OPTIONS, ids=lambda option: option.name)
def test_an_option_without_a_benchmark_for_it_is_refused(option: options.Option) -> None:
    asked = parsed(f"--{option.name}", "1")
    for names in ([], ["kernel"], ["kernel", "network"]):
        with pytest.raises(ConfigurationError, match=rf"--{option.name} goes with the benchmark {option.takers[0]}"):
            options.given(asked, names)


def test_what_takes_options_is_a_benchmark_and_runs_unasked_only_if_short() -> None:
    assert {taker for option in options.OPTIONS for taker in option.takers} <= set(BENCHMARKS)
    assert set(UNASKED) == set(BENCHMARKS) - {"soak", "hours", "stream"}
    assert UNASKED["servo"]["duration"] <= 10.0
