"""The experiments that are shipped: each can be read, and each runs with a simulated observer."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.experiment.design import read_design
from tests.processes import ROOT

FILES = sorted([*(ROOT / "examples/experiments").glob("*.toml"), *(ROOT / "examples/replications").glob("*.toml")])


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_it_can_be_read(file: Path) -> None:
    assert read_design(file).conditions
