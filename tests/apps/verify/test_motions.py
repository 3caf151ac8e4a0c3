"""`haptics verify` of calibrations: motions are followed row by row, and their forgeries found."""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devices
from apps.verify.check import verify
from apps.verify.findings import OK, Findings
from calibration.motions import Mover
from calibration.motions.excitation import Excitation
from calibration.motions.handle_motion import excite
from calibration.motions.joint_motion import excite_arm
from haptics.clock import Clock

NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
SHORT = Excitation(slowest=0.05, fastest=0.2, speeds=2, rounds=2, strokes=1, stroke_time=0.2)


def _device(name: str, _: Mapping[str, Any], clock: Clock) -> Any:
    return devices.create_device(name, {"hand": NOBODY}, clock=clock)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Recordings of an excitation of both kinds of device."""
    folder = tmp_path_factory.mktemp("motions")
    excite(Mover(functools.partial(_device, "virtual-joystick"), live=False), SHORT, folder / "handle")
    excite_arm(Mover.of("virtual-arm", {"hand": NOBODY}), SHORT, folder / "arm")
    return {"handle": folder / "handle", "arm": folder / "arm"}


@pytest.mark.parametrize("name", ["handle", "arm"])
def test_motions_raise_no_alarm(recordings: dict[str, Path], name: str) -> None:
    _, found = verify(recordings[name])
    assert (found.violations, found.missing, found.verdict) == ([], [], OK)
    assert found.residuals["place of the reference"].ticks > 1000


def _another_table(folder: Path, rows: Any) -> None:
    path = folder / "motion_0002.npy"
    table = np.load(path)
    table[100, 0] += 1e-3
    np.save(path, table)


def _another_journal(folder: Path, rows: Any) -> None:
    """The table as well as its hash in the journal."""
    _another_table(folder, rows)
    digest = hashlib.sha256((folder / "motion_0002.npy").read_bytes()).hexdigest()
    lines = [json.loads(line) for line in (folder / "settings.jsonl").read_text().splitlines()]
    lines[2]["table_sha256"] = digest
    (folder / "settings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _another_output(folder: Path, rows: Any) -> None:
    rows["command_unlimited"][700] *= 1.01


def _another_place(folder: Path, rows: Any) -> None:
    rows["displacement"][700] += 1e-6


@pytest.mark.parametrize("name", ["handle", "arm"])
@pytest.mark.parametrize("change", [_another_table, _another_journal, _another_output, _another_place])
def test_forged_motions_are_found(
    recordings: dict[str, Path], tmp_path: Path, name: str, change: Callable[[Path, Any], None]
) -> None:
    folder = tmp_path / "forged"
    shutil.copytree(recordings[name], folder)
    rows = np.load(folder / "ticks.npy")
    change(folder, rows)
    np.save(folder / "ticks.npy", rows)
    found: Findings = verify(folder)[1]
    assert "motion" in {one.rule for one in found.violations}
