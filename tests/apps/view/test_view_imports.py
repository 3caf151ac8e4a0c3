"""What the view loads."""

from __future__ import annotations

import subprocess
import sys


def test_the_data_side_does_without_qt() -> None:
    modules = (
        "view.counts",
        "view.feed",
        "view.history",
        "view.laws.curves",
        "view.laws.place",
        "view.process",
        "view.screenshot",
        "view.launch",
    )
    modules += (
        "shared.scale",
        "shared.summary",
        "shared.theme",
        "front_ends.several",
        "front_ends.link",
        "front_ends.run",
    )
    code = f"import sys; sys.path[:0] = {sys.path!r}; " + "; ".join(f"import apps.{name}" for name in modules)
    code += "; sys.exit(any(name.split('.')[0] in ('PySide6', 'pyqtgraph') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
