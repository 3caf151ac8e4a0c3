"""Long computations for the topic of tests/haptics/test_trace.py."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np

from haptics.trace import Reader, Ring
from tests.haptics.test_trace import SMALL, write_many


def test_no_torn_row_is_ever_returned_while_another_process_writes(tmp_path: Path) -> None:
    ring = Ring.create(tmp_path / "ring", SMALL, 64)
    reader = Reader(ring)
    writer = multiprocessing.get_context("spawn").Process(target=write_many, args=(ring.path, 20_000, 50))
    writer.start()
    total = 0
    while writer.is_alive() or ring.count > total + reader.lost:
        rows = reader.read()
        assert (rows["twice"] == 2 * rows["number"]).all()
        assert (rows["vector"][:, 0] == rows["number"]).all()
        assert (np.diff(rows["number"]) == 1).all()
        total += len(rows)
    writer.join()
    assert writer.exitcode == 0
    assert total + reader.lost == 20_000
    assert total > 0
