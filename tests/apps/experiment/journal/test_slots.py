"""Places in the order of arrival, asked for by several stations at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from apps.experiment.journal import reserve_slot
from haptics.errors import ConfigurationError
from tests.processes import ROOT

_STATION = """
import sys
from pathlib import Path
from apps.experiment.journal import reserve_slot

sys.stdin.readline()
print(*(reserve_slot(Path(sys.argv[1]), "friction", code) for code in sys.argv[2:]))
"""


def test_everybody_has_a_place_of_their_own_and_keeps_it(tmp_path: Path) -> None:
    assert [reserve_slot(tmp_path, "friction", code) for code in ("P3", "P1", "P2", "P1")] == [0, 1, 2, 1]
    assert reserve_slot(tmp_path, "viscosity", "P2") == 0


def test_stations_that_ask_at_once_never_get_the_same_place(tmp_path: Path) -> None:
    """P1 comes to all of them at the same moment, too."""
    codes = [[f"S{station}P{number}" for number in range(12)] for station in range(3)]
    stations = [
        subprocess.Popen(
            [sys.executable, "-c", _STATION, str(tmp_path), "P1", *own],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for own in codes
    ]
    for station in stations:
        assert station.stdin is not None
        station.stdin.write("go\n")
        station.stdin.flush()
    found = [[int(word) for word in station.communicate()[0].split()] for station in stations]
    assert all(station.returncode == 0 for station in stations)
    assert len({places[0] for places in found}) == 1
    others = [number for places in found for number in places[1:]]
    assert len(set(others) | {found[0][0]}) == len(others) + 1 == 37
    for own, places in zip(codes, found, strict=True):
        assert [reserve_slot(tmp_path, "friction", code) for code in own] == places[1:]
    assert len(list((tmp_path / "slots" / "task-friction").iterdir())) == 37


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"participant": "Ann Lee"}', "x" * 5_000_000])
def test_a_place_that_is_none_of_ours_is_named(tmp_path: Path, content: str) -> None:
    reserve_slot(tmp_path, "friction", "P1")
    (tmp_path / "slots" / "task-friction" / "slot-0001").write_text(content)
    with pytest.raises(ConfigurationError, match=r"slot-0001 is no reserved place"):
        reserve_slot(tmp_path, "friction", "P2")
