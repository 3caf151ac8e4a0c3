"""A virtual screen for each module that asks for one."""

import pytest

from tests.apps.screen import virtual_screen


@pytest.fixture(scope="module")
def screen():
    with virtual_screen() as screen:
        yield screen
