"""Ctrl-C during the long benchmarks: over at once, and nothing is left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from apps.bench.live import cyclictest
from tests.processes import program


def _alive(group: int) -> list[str]:
    """Return the commands of the processes of `group` that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        state, _, process_group = rest.split()[:3]
        if int(process_group) == group and state not in "ZX":
            found.append(name)
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
@pytest.mark.parametrize("name", ["servo", "soak"])
def test_an_interrupt_ends_everything(compiled: None, name: str, tmp_path: Path) -> None:
    if name == "servo" and not shutil.which(cyclictest.NAME):
        pytest.skip("needs cyclictest (Debian package rt-tests)")
    command = ("-m", "apps", "bench", name, "--duration", "30", "--json")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with program(*command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE) as process:
        until = time.monotonic() + 60.0
        while len(_alive(process.pid)) < 2:  # its first session is being started
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30.0)
        assert process.returncode == 130 and output == '{"error": "interrupted"}\n'
        until = time.monotonic() + 10.0
        while _alive(process.pid) and time.monotonic() < until:
            time.sleep(0.05)
        assert _alive(process.pid) == []
    assert list(tmp_path.iterdir()) == []
