"""The instructions of CONTRIBUTING work as written."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import devices
from apps.cli import main
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


def test_named_functions_and_files_exist():
    assert {("LAWS", "tests/haptics/strategies.py"), ("slope", "tests/haptics/references.py")} <= set(IN_FILES)
    for name, file in IN_FILES:
        source = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^(?:def |class )?{name}\b", source, re.MULTILINE), f"{name} is not defined in {file}"
    for file in re.findall(r"[a-z_]+/[a-z_/]+\.(?:py|md)", TEXT):
        assert (ROOT / file).is_file(), file


@pytest.mark.parametrize("arguments", [["devices"], ["devices", "--json"], ["run", "--help"], ["doctor", "--list"]])
def test_commands_know_a_device_that_was_added(arguments, monkeypatch, capsys):
    """Step 4 of adding a device is to register it."""
    place = "devices.virtual.joystick:VirtualJoystick"
    bench = devices.BackendInfo("bench", Causality.IMPEDANCE, "somebody's own", place)
    monkeypatch.setitem(devices.BACKENDS, "bench", bench)
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


def test_the_list_of_devices_fits_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "90")
    assert main(["devices"]) == 0
    table = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert max(map(len, table)) <= 90
    assert [line.split()[0] for line in table if not line.startswith(" ")] == list(devices.BACKENDS)
