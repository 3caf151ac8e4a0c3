"""Start of a recording: its folder and the metadata known before the first tick."""

from __future__ import annotations

import contextlib
import datetime
import functools
import hashlib
import itertools
import math
import platform
import shutil
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.settings.scenes import scene_table
from haptics.errors import ConfigurationError
from haptics.recording.recorder import Recorder

if TYPE_CHECKING:
    from apps.settings.config import SessionConfig

_OWN = ("haptics", "devices", "calibration", "apps")
_PACKAGES = ("haptics", "numpy", "numba", "pyqtgraph", "PySide6-Essentials", "matplotlib")


def new_recorder(config: SessionConfig, advice: list[dict[str, Any]], folder: Path | None = None) -> Recorder:
    """Create a recording in a new folder and write its first parameters.

    Parameters
    ----------
    config : SessionConfig
        The session.
    advice : list of dict
        Advice on its parameters (`apps.session.advice`).
    folder : Path, optional
        Folder of the recording. By default it is named by the time, within the session's folder for recordings.

    Raises
    ------
    ConfigurationError
        If the recording cannot be written.
    """
    now = datetime.datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    folder = folder or Path(config.session.record) / f"{now}_{config.device}_{config.session.model}"
    parent, name = folder.parent, folder.name
    facts = {**_facts(config), "advice": advice}
    for number in itertools.count(1):
        try:
            return _begun(parent / (name if number == 1 else f"{name}_{number}"), facts, journal_entry(config))
        except FileExistsError:
            if not parent.is_dir():
                raise ConfigurationError(f"session.record = {parent}: must be a folder.") from None
        except OSError as error:
            raise ConfigurationError(
                f"session.record = {parent}: no recording can be made there ({error.strerror or error})."
            ) from error
    raise AssertionError  # pragma: no cover - counting does not end


def _begun(folder: Path, facts: dict[str, Any], parameters: dict[str, Any]) -> Recorder:
    """Create a recording and write its first parameters; remove the recording if they cannot be written."""
    recorder = Recorder(folder, facts)
    try:
        recorder.journal_settings(0, parameters)
    except OSError:
        with contextlib.suppress(OSError):
            recorder.close({}, complete=False)
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return recorder


def journal_entry(config: SessionConfig) -> dict[str, Any]:
    """Return the parameters in force as an entry of the settings journal."""
    from haptics.elements.tables import plugin_of

    plugin = plugin_of(config.law)
    origin = {"law_package": plugin.origin} if plugin is not None else {}
    scene = {"scene": scene_table(config.scene)} if config.scene is not None else {}
    return {"model": config.session.model, "law": config.law, **scene, "element": config.element, **origin}


def _facts(config: SessionConfig) -> dict[str, Any]:
    from devices import find_backend

    return {
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
        "device": {name: None if value == math.inf else value for name, value in asdict(config.spec).items()},
        **({"device_package": package} if (package := find_backend(config.device).package) else {}),
        "model": config.session.model,
        "rate_hz": config.session.rate,
        "configuration": config.as_dict(),
        "limits": asdict(config.limits),
        "parameter_file_hash": config.parameter_file_hash,
        "friction_file_hash": config.friction_file_hash,
        **({"measured_file_hash": config.measured_file_hash} if config.measured_file_hash else {}),
        **made_by(),
    }


def made_by() -> dict[str, Any]:
    """Return the versions of the packages and the hash of the program that make a recording."""
    return {
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
        "program_sha256": program_hash(),
    }


@functools.cache
def program_hash() -> str:
    """Return the SHA-256 of the program's sources, which also identifies versions between releases."""
    root = Path(__file__).resolve().parents[2]
    found = hashlib.sha256()
    for package in _OWN:
        for source in sorted((root / package).rglob("*.py")):
            found.update(source.relative_to(root).as_posix().encode())
            found.update(source.read_bytes())
    return found.hexdigest()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
