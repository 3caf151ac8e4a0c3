"""Benchmark ``hours``: peak memory and time of all commands over the length of the recording.

Offline sessions of 1/60, 1/6 and 1/1 of the duration are recorded, and each command processes them in a separate
process. The main result is the ratio of the peak memory for the longest recording to that for 1/6 of its length, which
is 1 if memory does not depend on the length.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from apps.bench import soak
from apps.bench.outcome import Progress, table, table_of
from apps.shared.command import Answer
from haptics.errors import ConfigurationError, HapticError
from haptics.records import COLUMNS
from haptics.settings import bounded, build, documented, string

LARGEST = 300.0
"""Limit of the peak memory of a command [MB]."""

FLAT = 1.1
"""Limit of the ratio of peak memory between the longest recording and 1/6 of its length."""

_PARTS = (60, 6, 1)
_SPARE = 4.0
"""Required disk space relative to the longest recording: two recordings and one export."""


@documented
@dataclass(frozen=True)
class Settings(soak.Settings):
    """Settings of the benchmark."""

    where: ClassVar[str] = "bench hours"

    duration: float = bounded(3600.0, minimum=60.0, maximum=1e5, unit="s", doc="length of the longest session")
    device: str = string("virtual-joystick", allowed="the name of a virtual device", doc="device, as for haptics run")
    record: str = string("", allowed="a folder", doc="folder for temporary recordings; a new temporary folder if empty")


def run(progress: Progress, **options: Any) -> Answer:
    """Run the benchmark."""
    settings = build(Settings, options, Settings.where)
    lengths: dict[str, list[dict[str, float]]] = {}
    if settings.record:
        Path(settings.record).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="haptics-bench-", dir=settings.record or None) as made:
        folder = Path(made)
        needed = _SPARE * settings.duration * settings.rate * COLUMNS.itemsize
        if shutil.disk_usage(folder).free < needed:
            raise ConfigurationError(
                f"{needed / 1e9:.1f} GB are needed in {folder.parent}: name another folder with --record."
            )
        for number, part in enumerate(_PARTS):
            ticks = round(settings.duration / part * settings.rate)
            for name, command in _commands(settings, settings.duration / part, folder):
                progress((number + 0.5) / len(_PARTS), f"{name}: {ticks} ticks")
                lengths.setdefault(name, []).append({"ticks": ticks, **_measure(command, ticks)})
            for left in folder.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
    result: dict[str, Any] = {
        "device": settings.device,
        "rate_hz": settings.rate,
        "duration_s": settings.duration,
        "commands": {
            name: {"lengths": found, "memory_ratio": round(found[-1]["memory_mb"] / found[-2]["memory_mb"], 3)}
            for name, found in lengths.items()
        },
    }
    result["failures"] = failures(result)
    return Answer(result, _text(result), error=" ".join(result["failures"]))


def failures(result: dict[str, Any]) -> list[str]:
    """Return a sentence for each command that exceeds a limit."""
    found = []
    for name, one in result["commands"].items():
        peak, ratio = one["lengths"][-1]["memory_mb"], one["memory_ratio"]
        if peak > LARGEST:
            found.append(f"{name} had {peak:.0f} MB in use, more than {LARGEST:.0f} MB.")
        if ratio > FLAT:
            found.append(f"{name} needs {ratio:.2f} times the memory for six times the length.")
    return found


def _commands(settings: Settings, duration: float, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield name and arguments of each command; the first two create the recordings for the others."""
    asked = ["--device", settings.device, "--clock", "off", "--duration", f"{duration:g}", "--headless"]
    asked += ["--rate", f"{settings.rate:g}", *(["--model", settings.model] if settings.model else [])]
    first, second = folder / "first", folder / "second"
    yield "run", ["run", *asked, "--set", "session.picture=false", "--record", str(first)]
    yield "run with picture", ["run", *asked, "--record", str(second)]
    (one,), (other,) = first.iterdir(), second.iterdir()
    yield "replay --verify", ["replay", str(one), "--verify"]
    yield "verify", ["verify", str(one)]
    yield "compare", ["compare", str(one), str(other), "--out", str(folder / "compared.png")]
    shutil.rmtree(second)
    kinds = ["csv", *(["parquet"] if importlib.util.find_spec("pyarrow") else []), "mat"]
    kinds += ["mcap"] if importlib.util.find_spec("mcap") else []
    for kind in kinds:
        out = folder / f"exported.{kind}"
        yield f"export --to {kind}", ["export", str(one), "--to", kind, "--out", str(out)]
        out.unlink()
    yield "pack", ["pack", str(one)]
    yield "verify, packed", ["verify", str(one)]
    yield "export --to csv, packed", ["export", str(one), "--to", "csv", "--out", str(folder / "packed.csv")]


def _measure(arguments: list[str], ticks: int) -> dict[str, float]:
    """Run a command in a separate process and return its resource usage for a recording of `ticks`.

    It is the peak memory [MB], the wall time and the processor time [s], and the number of ticks per second.
    """
    begun = time.monotonic()
    with tempfile.TemporaryFile() as said:
        process = os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "apps", *arguments, "--json"],
            {**os.environ, "DISPLAY": "", "WAYLAND_DISPLAY": "", "PYTHONPATH": str(Path(__file__).parents[2])},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, said.fileno(), 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
        _, status, used = os.wait4(process, 0)
        taken = time.monotonic() - begun
        said.seek(0)
        answer = said.read()
    if status:
        message = "it failed without an error message; it may have run out of memory."
        with contextlib.suppress(ValueError, KeyError):
            message = str(json.loads(answer)["error"])
        raise HapticError(f"haptics {' '.join(arguments)}: {message}")
    return {
        "memory_mb": round(used.ru_maxrss * 1024.0 / 1e6, 1),
        "time_s": round(taken, 2),
        "processor_s": round(used.ru_utime + used.ru_stime, 2),
        "ticks_per_s": round(ticks / taken),
    }


_COLUMNS = {
    "name": "command",
    "ticks": "ticks",
    "memory_mb": "peak MB",
    "time_s": "seconds",
    "processor_s": "processor s",
    "ticks_per_s": "ticks/s",
    "memory_ratio": "memory over a sixth",
}


def _text(result: dict[str, Any]) -> str:
    last = [{"name": name, **one["lengths"][-1], **one} for name, one in result["commands"].items()]
    lengths = [(name, *(length["memory_mb"] for length in one["lengths"])) for name, one in result["commands"].items()]
    ticks = [f"{length['ticks']} ticks" for length in next(iter(result["commands"].values()))["lengths"]]
    return "\n".join([table_of(_COLUMNS, last), "", table([("peak MB", *ticks), *lengths])])
