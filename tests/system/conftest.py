"""A virtual screen for each module that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apps.screen import Screen, virtual_screen


@pytest.fixture(scope="module")
def screen() -> Iterator[Screen]:
    with virtual_screen() as screen:
        yield screen
