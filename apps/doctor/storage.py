"""Checks of storage: the disk for recordings, shared memory, and files left by killed runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from apps.doctor.machine import Finding, Machine, note, ok, problem, program
from haptics.errors import HapticError

HIGHEST_RATE = 8000.0
"""Highest servo rate [Hz], which determines the growth of a recording."""
SIZE, BLOCK = 8 << 20, 256 << 10
"""Size of the test file and of its blocks [bytes]."""
_MARGIN = 4.0
"""Required ratio of disk speed to recording rate, because other programs write too."""
_SHORT, _NOTHING = 3600.0, 60.0
"""Recording times [s] for which there should be, and must be, free disk space."""
SHARED = "/dev/shm"
_RINGS = 16 << 20
"""Required shared memory of a run, with a margin [bytes]."""


def need() -> float:
    """Return the growth rate of a recording at the highest servo rate [bytes/s]."""
    from haptics.records import COLUMNS

    return HIGHEST_RATE * COLUMNS.itemsize


def write_speed(folder: Path) -> float:
    """Return the speed of writing a file in `folder` to the disk [bytes/s]."""
    block = os.urandom(BLOCK)
    with tempfile.TemporaryFile(dir=folder) as file:
        start = time.perf_counter()
        for _ in range(SIZE // BLOCK):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        return SIZE / (time.perf_counter() - start)


def disk(
    machine: Machine,
    speed: Callable[[Path], float] = write_speed,
    free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
) -> Finding:
    """Check that the disk is fast enough for a recording and has enough space."""
    again = f"{program()} doctor disk --record "
    try:
        wanted = machine.record.absolute()
        folder = next(path for path in (wanted, *wanted.parents) if path.exists())
        rate, room = speed(folder), free(folder)
    except OSError as error:
        return problem(
            f"no recording can be made in {machine.record} ({error.strerror or error})",
            "# choose another folder, here with --record and in a run with the same option:",
            again + '"$HOME/recordings"',
        )
    growth = need()
    seconds = room / growth
    time = f"{seconds / 3600.0:.0f} h" if seconds >= 3600.0 else f"{seconds / 60.0:.0f} min"
    words = (
        f"{folder} takes {_amount(rate)}/s and has room for {time}; "
        f"a recording at {HIGHEST_RATE / 1000:g} kHz needs {_amount(growth)}/s"
    )
    fix = ("# another folder may be on another disk:", again + '"$HOME/recordings"')
    if rate < growth or seconds < _NOTHING:
        return problem(words, *fix)
    if rate < _MARGIN * growth or seconds < _SHORT:
        return note(words, *fix)
    return ok(words)


def _amount(count: float) -> str:
    return f"{count / 1e6:.3g} MB" if count < 1e9 else f"{count / 1e9:.3g} GB"


def share(size: int) -> Path:
    """Share memory like the processes of a run, and return the path of the shared file."""
    from haptics.shared import SharedFile, map_new

    file = SharedFile("doctor")
    try:
        map_new(file.path, size).close()
        return file.path
    finally:
        file.close()


def shared_memory(
    machine: Machine,
    share: Callable[[int], Path] = share,
    writable: Callable[[Path], bool] = lambda folder: os.access(folder, os.W_OK),
) -> Finding:
    """Check that the processes of a run can share memory."""
    try:
        path = share(_RINGS)
    except (HapticError, OSError) as error:
        return problem(
            f"processes cannot share {_amount(_RINGS)} of memory ({error})",
            f"{machine.sudo}mount -o remount,size=64M {SHARED}",
            "# in docker: --shm-size=64m, and more memory for the container",
        )
    if path.is_relative_to("/proc"):
        return ok(f"{_amount(_RINGS)} of memory can be shared without a file: a killed run leaves nothing behind")
    folder = machine.path(SHARED)
    if machine.system != "linux" or writable(folder):
        return ok(f"{_amount(_RINGS)} of memory can be shared through files of {path.parent}")
    return note(
        f"{SHARED} cannot be written; the processes of a run share files of {path.parent}, which may be a slow disk",
        f"{machine.sudo}mkdir -p {SHARED} && {machine.sudo}mount -t tmpfs -o mode=1777 tmpfs {SHARED}",
    )


_SHARED_FILE = re.compile(r"haptics-[\w-]+\.(trace|settings|control)")
_YOUNG = 60.0
"""Minimum age of a stale file [s], because a new run may not have mapped its file yet."""


def mapped(machine: Machine) -> str:
    """Return the memory maps of all accessible processes."""
    texts = []
    for path in machine.path("/proc").glob("[0-9]*/maps"):
        try:
            texts.append(path.read_text(errors="replace"))
        except OSError:  # the process has ended, or belongs to another user
            continue
    return "\n".join(texts)


def stale_files(machine: Machine, now: Callable[[], float] = time.time, temporary: Path | None = None) -> Finding:
    """Check for shared-memory files left by killed runs."""
    candidates = []  # old files whose processes, if any, belong to this user
    for folder in dict.fromkeys([machine.path(SHARED), temporary or Path(tempfile.gettempdir())]):
        for path in sorted(folder.glob("haptics-*")):
            if _SHARED_FILE.fullmatch(path.name):
                status = path.stat()
                if now() - status.st_mtime > _YOUNG and (machine.is_root or status.st_uid == machine.user):
                    candidates.append(path)
    in_use = mapped(machine) if candidates else ""
    left = [path for path in candidates if path.name not in in_use]
    if not left:
        return ok("no killed run has left files in memory")
    size = sum(path.stat().st_size for path in left)
    patterns = dict.fromkeys(f"{shlex.quote(str(path.with_suffix('')))}.*" for path in left)
    return note(
        f"killed runs have left {len(left)} files ({_amount(size)}) in {left[0].parent}; nobody uses them",
        f"rm -f {' '.join(patterns)}",
    )
