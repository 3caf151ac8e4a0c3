"""Recordings of earlier versions kept as files, which every later version must read."""

from pathlib import Path

import pytest

from apps.cli import main
from tests.processes import NO_PICTURE

_DATA = Path(__file__).resolve().parent / "data"

KEPT = sorted(path for path in _DATA.glob("format_*/*") if path.is_dir())
"""Folders of the recordings, described in ``tests/data/README.md``."""


def record_offline(parent, *arguments):
    """Record a second of model C on the virtual joystick without a clock; return the folder of the recording."""
    asked = ("--device", "virtual-joystick", "--model", "C", "--duration", "1", "--clock", "off", *arguments)
    before = set(parent.iterdir())
    assert main(["run", "--headless", *asked, *NO_PICTURE, "--record", str(parent)]) == 0
    (found,) = set(parent.iterdir()) - before
    return found


of_every_kept_recording = pytest.mark.parametrize("kept", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
"""Parametrizes a test over all kept recordings. A test that writes into a recording must copy it."""
