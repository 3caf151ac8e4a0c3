"""A small test suite in a folder of its own, under the rules of tests/conftest.py: what pytest makes of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.processes import ROOT

MARKERS = "[pytest]\nmarkers =\n few:\n slow:\n wall_clock:\n"


def words_of_pytest(folder: Path, conftest: str, tests: str, *options: str) -> str:
    """Return what pytest says of `tests`; `conftest` is the code beside them, which finds the project's packages."""
    (folder / "conftest.py").write_text(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{conftest}")
    (folder / "test_it.py").write_text(tests)
    (folder / "pytest.ini").write_text(MARKERS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:benchmark", *options, str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout
