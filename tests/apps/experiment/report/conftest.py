"""Sessions that several tests of the report read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.apps.experiment.report.sittings import design, write_session


@pytest.fixture(scope="session")
def weber(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three simulated observers, two references, QUEST+; nothing is flushed to the disk, which takes longest."""
    out = tmp_path_factory.mktemp("weber")
    flush, os.fsync = os.fsync, lambda _: None
    try:
        for code in ("P01", "P02", "P03"):
            write_session(out, code, design(catch={"easy": 0.1, "null": 0.05}))
    finally:
        os.fsync = flush
    return out
