from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from haptics.trace import Trace

# The first example of a test may compile a kernel: a deadline would measure that.
settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[Trace]:
    yield Trace.create(tmp_path / "trace")
