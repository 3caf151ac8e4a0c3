from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from haptics.elements.models import Element
from haptics.trace import Trace
from tests.haptics.drives import Begin, Drive
from tests.haptics.strategies import LAWS, make


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[Trace]:
    yield Trace.create(tmp_path / "trace")


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Makes drives, and verifies them in the end."""
    drives: list[Drive] = []

    def new(element: Element | str, tighter: dict[str, Any] | None = None, **facts: Any) -> Drive:
        element = make(element, LAWS["coulomb"]) if isinstance(element, str) else element
        drives.append(Drive(element, tighter, **facts))
        return drives[-1]

    yield new
    for drive in drives:
        drive.verify()
