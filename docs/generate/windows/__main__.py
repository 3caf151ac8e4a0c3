"""The pictures of all windows in the documentation: ``python -m docs.generate.windows [--shots FOLDER]``.

Sessions without a clock are recorded, and every window is drawn with them on virtual screens of three sizes, dark and
light. It needs Xvfb and xdotool (Debian: xvfb, xdotool) and OpenGL in software (libgl1-mesa-dri).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from docs.generate.windows import in_opengl, sheets
from docs.generate.windows.recorded import record
from tests.apps.screen import WHY_NOT, virtual_screen

SIZES = ((1280, 720), (1366, 768), (2560, 1440))
"""Of the screens [pixel]."""


def main() -> None:
    """Make all pictures."""
    parser = argparse.ArgumentParser(prog="python -m docs.generate.windows", description=(__doc__ or "").split(":")[0])
    parser.add_argument("--shots", type=Path, help="keep the pictures in their whole size in this folder")
    parser.add_argument("--only", default="", help="draw one window of Qt alone, for instance paused; with --shots")
    options = parser.parse_args()
    if WHY_NOT:
        sys.exit(WHY_NOT)
    with tempfile.TemporaryDirectory() as place:
        runs, shots = Path(place) / "runs", (options.shots or Path(place) / "shots").resolve()
        shots.mkdir(parents=True, exist_ok=True)
        record(runs)
        for size in SIZES:
            with virtual_screen(size) as screen:
                # In a separate process, because Qt reads the size of the screen when it starts.
                program = [sys.executable, "-m", "docs.generate.windows.in_qt", str(runs), str(shots), options.only]
                subprocess.run(program, env=screen.environment, check=True)
                if not options.only:
                    in_opengl.draw(screen, size, runs, shots)
        sheets.make(shots, SIZES)


if __name__ == "__main__":
    main()
