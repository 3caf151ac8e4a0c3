"""Recordings that are kept as files: made by the version of their time, for every later one to read."""

from pathlib import Path

import pytest

_DATA = Path(__file__).resolve().parent / "data"

KEPT = sorted(path for path in _DATA.glob("format_*/*") if path.is_dir())
"""Folders of the recordings; ``tests/data/README.md`` says what each is."""

of_every_kept_recording = pytest.mark.parametrize("kept", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
"""Runs a test with every kept recording; one that writes into a recording works on a copy."""
