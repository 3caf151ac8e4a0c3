"""The sessions that the pictures show: without a clock and by a hand in software, so that they are always the same."""

from __future__ import annotations

from pathlib import Path

from apps.session.run import record_offline
from apps.settings.config import SessionConfig, complete
from haptics.recording.recording import Recording

SECONDS = 12.0
STRIBECK = {"name": "stribeck", "kinetic_force": 2.5, "static_force": 4.0, "stribeck_velocity": 0.12}
RUNS = {
    "stribeck": {"law": STRIBECK},
    "coulomb": {"law": {"name": "coulomb", "force": 4.0}},
    "materials": {"session": {"scene": "ice-wood-rubber"}},
}
"""Settings by name that differ from the common session."""


def config_of(name: str) -> SessionConfig:
    """Return the configuration of a run."""
    session = {"model": "C", "clock": "off", "duration": SECONDS, "picture": False}
    own = RUNS[name]
    return complete({**own, "session": session | own.get("session", {}), "device": {"name": "virtual-joystick"}})


def record(folder: Path) -> None:
    """Record all runs, each in a folder of its name."""
    for name in RUNS:
        record_offline(config_of(name), folder / name)


def load(folder: Path, name: str) -> tuple[Recording, dict[str, object]]:
    """Return a run and its metadata with a fixed person and time."""
    recording = Recording(folder / name)
    return recording, {**recording.metadata, "recording": f"recordings/2026-11-22T19-00-00_virtual-joystick_C_{name}"}
