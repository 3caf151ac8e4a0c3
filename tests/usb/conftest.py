"""Skips what failed because the machine did not let the program run, and says by how much."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.usb.judgement import Scenes


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Function) -> Iterator[None]:
    """Turn the failure of a judgement that has an excuse into a skip."""
    for one in _played(item):
        one.judged.clear()
    try:
        return (yield)
    except (AssertionError, pytest.fail.Exception) as error:
        excuse = next((words for one in _played(item) if (words := one.excuse())), "")
        if not excuse:
            raise
        pytest.skip(f"{excuse}; it had said: {str(error).strip().splitlines()[-1:]}")


def _played(item: pytest.Function) -> list[Scenes]:
    return [value for value in item.funcargs.values() if isinstance(value, Scenes)]
