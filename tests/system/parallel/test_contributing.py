"""The instructions of CONTRIBUTING work as written."""

from __future__ import annotations

import json
from typing import Any

import pytest

import devices
from apps.cli import main
from haptics.device import Causality


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
