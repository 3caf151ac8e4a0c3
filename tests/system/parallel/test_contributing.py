"""The instructions of CONTRIBUTING work as written."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import devices
from apps.cli import main
from devices.virtual.joystick import VirtualJoystick
from haptics.device import Causality
from tests.processes import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_NAMES = r"((?:`[A-Za-z_]+`(?:, | and |, and )?)+)"
_FILE = r"(?:\[[^]]+\]\()?`?([a-z_/]+\.py)`?"
IN_FILES = [
    (name, file)
    for names, file in re.findall(rf"{_NAMES}\s+(?:in|of)\s+{_FILE}", " ".join(TEXT.split()))
    for name in re.findall(r"[A-Za-z_]+", names)
    if name != "and"
]


def test_the_text_is_understood():
    assert {("LAWS", "tests/haptics/strategies.py"), ("slope", "tests/haptics/references.py")} <= set(IN_FILES)
    assert {("_KNOWN", "devices/__init__.py"), ("LAWS", "haptics/elements/catalogue.py")} <= set(IN_FILES)


@pytest.mark.parametrize(("name", "file"), IN_FILES)
def test_what_is_named_is_in_the_file_that_is_named(name, file):
    source = (ROOT / file).read_text(encoding="utf-8")
    assert re.search(rf"^(?:def |class )?{name}\b", source, re.MULTILINE), f"{name} is not defined in {file}"


@pytest.mark.parametrize("file", sorted(set(re.findall(r"[a-z_]+/[a-z_/]+\.(?:py|md)", TEXT))))
def test_the_files_that_are_named_exist(file):
    assert (ROOT / file).is_file()


class Bench(VirtualJoystick):
    """Device of another package."""


def _register(monkeypatch):
    """Perform step 4, *Register*, of adding a device."""
    bench = devices.BackendInfo("bench", Causality.IMPEDANCE, "somebody's own", f"{__name__}:Bench")
    monkeypatch.setitem(devices.BACKENDS, "bench", bench)


@pytest.mark.parametrize("arguments", [["devices"], ["devices", "--json"], ["run", "--help"], ["doctor", "--list"]])
def test_commands_know_a_device_that_was_added(arguments, monkeypatch, capsys):
    _register(monkeypatch)
    try:
        assert main(arguments) == 0
    except SystemExit as left:
        assert not left.code
    out = capsys.readouterr().out
    assert "bench" in out or arguments[0] != "devices"
    if arguments == ["devices", "--json"]:
        row: dict[str, Any] = next(row for row in json.loads(out)["devices"] if row["name"] == "bench")
        assert row["missing"] == []
        assert "C" in row["models"]


_SCRIPT = """
import sys
from apps.cli import main
from devices import BACKENDS, BackendInfo
from haptics.device import Causality

place = "tests.system.parallel.test_contributing:Bench"
BACKENDS["bench"] = BackendInfo("bench", Causality.IMPEDANCE, "somebody's own", place, virtual=True)
if __name__ == "__main__":
    sys.exit(main(["run", "--device", "bench", "--headless", "--duration", "0.2", "--json"]))
"""


def test_a_session_runs_on_a_device_that_was_added(tmp_path):
    script = tmp_path / "with_bench.py"
    script.write_text(_SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(Path.home())},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["device"] == "bench"
    assert answer["ticks"] + answer["skipped"] == 200


def test_the_list_of_devices_fits_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "90")
    assert main(["devices"]) == 0
    table = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert max(map(len, table)) <= 90
    assert [line.split()[0] for line in table if not line.startswith(" ")] == list(devices.BACKENDS)
