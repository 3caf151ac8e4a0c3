from __future__ import annotations

import pytest

from apps.bench.registry import BENCHMARKS, chosen, load
from haptics.errors import ConfigurationError


def test_without_names_all_are_run() -> None:
    assert chosen([]) == list(BENCHMARKS)


def test_every_name_once_in_the_order_of_asking() -> None:
    assert chosen(["network", "kernel", "network"]) == ["network", "kernel"]


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown benchmark 'kernels'\. Did you mean 'kernel'\?"):
        chosen(["kernels"])


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_says_what_it_measures(name: str) -> None:
    assert load(name).TITLE
