"""Recordings of earlier versions kept as files, which every later version must read."""

from pathlib import Path

import pytest

_DATA = Path(__file__).resolve().parent / "data"

KEPT = sorted(path for path in _DATA.glob("format_*/*") if path.is_dir())
"""Folders of the recordings, described in ``tests/data/README.md``."""

of_every_kept_recording = pytest.mark.parametrize("kept", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
"""Parametrizes a test over all kept recordings. A test that writes into a recording must copy it."""
