"""The disk for recordings, shared memory, and what dead runs have left."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from apps.doctor.checks import storage
from apps.doctor.checks.storage import need
from haptics.errors import ConfigurationError
from haptics.records import COLUMNS
from tests.apps.doctor.machines import ROOT, expect, machine

HOUR = 3600.0


def test_a_recording_needs_a_row_per_tick() -> None:
    assert need() == 8000 * COLUMNS.itemsize


def test_the_disk_is_really_written_and_left_as_it_was(tmp_path: Path) -> None:
    here = machine(tmp_path, record=tmp_path / "not" / "yet")
    finding = storage.disk(here)
    assert str(tmp_path) in finding.found
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("speed", "room", "severity"),
    [
        (100.0, 10 * HOUR, "ok"),
        (2.0, 10 * HOUR, "note"),
        (0.9, 10 * HOUR, "problem"),
        (100.0, 0.5 * HOUR, "note"),
        (100.0, 30.0, "problem"),
    ],
)
def test_speed_and_room_are_judged_by_what_a_recording_needs(
    tmp_path: Path, speed: float, room: float, severity: str
) -> None:
    """`speed` as a multiple of the need, `room` as the length of a recording [s]."""
    finding = storage.disk(machine(tmp_path), lambda _: speed * need(), lambda _: int(room * need()))
    expect(finding, severity, "a recording at 8 kHz needs")


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    expect(storage.disk(machine(tmp_path, record=tmp_path / "file")), "problem", "--record")


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    def full(_: Path) -> float:
        raise OSError(28, "No space left on device")

    expect(storage.disk(machine(tmp_path), full), "problem", "No space left")


def test_memory_is_really_shared(tmp_path: Path) -> None:
    path = storage.share(1 << 16)
    assert not path.exists()
    expect(storage.shared_memory(machine(tmp_path)), "ok", "16.8 MB")


def test_shared_memory_that_is_a_file_or_that_cannot_be_had(tmp_path: Path) -> None:
    def in_files(_: int) -> Path:
        return Path("/tmp/haptics-x.doctor")

    def no_room(_: int) -> Path:
        raise ConfigurationError("no room in memory for 16777216 bytes (No space left on device): free some")

    expect(storage.shared_memory(machine(tmp_path), in_files, lambda _: True), "ok", "/tmp")
    expect(storage.shared_memory(machine(tmp_path), in_files, lambda _: False), "note", "mount -t tmpfs")
    expect(storage.shared_memory(machine(tmp_path), no_room), "problem", "--shm-size")


def left(root: Path, name: str, maps: str = "") -> dict[str, str]:
    return {f"{storage.SHARED}/{name}": "x" * 1000, "/proc/12/maps": maps}


def later() -> float:
    return time.time() + 3600.0


def test_files_that_nobody_has_mapped_are_left_behind(tmp_path: Path) -> None:
    files = left(tmp_path, "haptics-4711-99.trace") | left(tmp_path, "haptics-4711-99.control")
    here = machine(tmp_path / "m", files, os.getuid())
    finding = storage.stale_files(here, later, tmp_path)
    expect(finding, "note", "2 files", "haptics-4711-99.*")
    subprocess.run(["sh", "-c", finding.fix], check=True)
    expect(storage.stale_files(here, later, tmp_path), "ok")


def test_files_in_use_young_ones_and_those_of_others_are_left_alone(tmp_path: Path) -> None:
    name = "haptics-abc_12.trace"
    used = machine(tmp_path / "used", left(tmp_path, name, f"7f00-7f01 rw-s 0 0:1 5 /dev/shm/{name}\n"), os.getuid())
    expect(storage.stale_files(used, later, tmp_path), "ok")
    young = machine(tmp_path / "young", left(tmp_path, name), os.getuid())
    expect(storage.stale_files(young, time.time, tmp_path), "ok")
    other = machine(tmp_path / "other", left(tmp_path, name), os.getuid() + 1)
    if other.user != ROOT:
        expect(storage.stale_files(other, later, tmp_path), "ok")
    unknown = machine(tmp_path / "unknown", left(tmp_path, "haptics-notes.txt"), os.getuid())
    expect(storage.stale_files(unknown, later, tmp_path), "ok")
