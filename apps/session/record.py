"""Recording of a session: its folder and metadata, key events, and parameter advice."""

from __future__ import annotations

import contextlib
import datetime
import functools
import hashlib
import itertools
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.shared.command import package_versions
from haptics.errors import ConfigurationError
from haptics.recording.recorder import Recorder

if TYPE_CHECKING:
    from apps.settings.config import SessionConfig
    from haptics.design import Advice
    from haptics.device import DeviceSpec
    from haptics.elements.models import Element
    from haptics.scenes import Scene
    from haptics.trace import Ring

BEFORE = -1
"""Tick of an event before tick 0."""

_OWN = ("haptics", "devices", "calibration", "apps")
_PACKAGES = ("haptics", "numpy", "numba", "pyqtgraph", "PySide6-Essentials", "matplotlib")


# --- metadata ---------------------------------------------------------------------------------------------------------


def new_recorder(config: SessionConfig, advice: list[dict[str, Any]], folder: Path | None = None) -> Recorder:
    """Create a recording in a new folder and write its first parameters.

    Parameters
    ----------
    config : SessionConfig
        The session.
    advice : list of dict
        Advice on its parameters (`ParameterAdvice`).
    folder : Path, optional
        Folder of the recording; a number is appended if it exists. By default it is named by the time, within the
        session's folder for recordings.

    Raises
    ------
    ConfigurationError
        If the recording cannot be written.
    """
    now = datetime.datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    folder = folder or Path(config.session.record) / f"{now}_{config.device}_{config.session.model}"
    parent, name = folder.parent, folder.name
    facts = {**session_metadata(config), "advice": advice}
    for number in itertools.count(1):
        try:
            recorder = Recorder(parent / (name if number == 1 else f"{name}_{number}"), facts)
            try:
                recorder.journal_settings(0, journal_entry(config))
            except OSError:
                with contextlib.suppress(OSError):
                    recorder.close({}, complete=False)
                shutil.rmtree(recorder.folder, ignore_errors=True)
                raise
            return recorder
        except FileExistsError:
            if not parent.is_dir():
                raise ConfigurationError(f"session.record = {parent}: must be a folder.") from None
        except OSError as error:
            raise ConfigurationError(
                f"session.record = {parent}: no recording can be made there ({error.strerror or error})."
            ) from error
    raise AssertionError  # pragma: no cover - counting does not end


def journal_entry(config: SessionConfig) -> dict[str, Any]:
    """Return the parameters in force as an entry of the settings journal."""
    from haptics.elements.tables import plugin_of
    from haptics.scenes import scene_table

    plugin = plugin_of(config.law)
    origin = {"law_package": plugin.origin} if plugin is not None else {}
    scene = {"scene": scene_table(config.scene)} if config.scene is not None else {}
    return {"model": config.session.model, "law": config.law, **scene, "element": config.element, **origin}


def session_metadata(config: SessionConfig) -> dict[str, Any]:
    """Return the metadata of a recording that are known before the first tick."""
    from devices import find_backend

    package = find_backend(config.device).package
    return {
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
        "device": {name: None if value == math.inf else value for name, value in asdict(config.spec).items()},
        **({"device_package": package} if package else {}),
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
    return {"versions": package_versions(_PACKAGES), "program_sha256": program_hash()}


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


# --- key events -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeyEvent:
    """A press or release of a key in a front end of the session.

    Attributes
    ----------
    name : str
        The key, as in `apps.front_ends.messages.Key`.
    down : bool
        True for a press, False for a release.
    tick : int
        Tick of the event: the latest tick due by then, whether executed or skipped; `BEFORE` before tick 0. Without a
        clock, it is the last tick executed when the message arrived.
    monotonic_ns : int
        Time of the event on the monotonic clock [ns].
    """

    name: str
    down: bool
    tick: int
    monotonic_ns: int


class KeyJournal:
    """Assigns ticks to key events, writes them to ``events.jsonl``, and notifies listeners.

    Parameters
    ----------
    recorder : Recorder
        The recording.
    trace : Ring
        Trace of the run, which holds the time of tick 0.
    rate : float or None
        Ticks per second; None for a run without a clock.
    """

    def __init__(self, recorder: Recorder, trace: Ring, rate: float | None) -> None:
        self._recorder, self._trace, self._rate = recorder, trace, rate
        self._listeners: list[Callable[[KeyEvent], None]] = []

    def listen(self, listener: Callable[[KeyEvent], None]) -> None:
        """Call `listener` for every key event from now on, after the event was written.

        It is called between heartbeats of the servo and must return within milliseconds.
        """
        self._listeners.append(listener)

    def write(self, name: str, down: bool, at: float) -> KeyEvent:
        """Write a press or release of the key `name` at the instant `at` [s, monotonic]; return the event.

        Raises
        ------
        OSError
            If the event cannot be written.
        """
        instant = min(round(at * 1e9), time.monotonic_ns())
        if self._rate is None:
            newest = self._trace.since(self._trace.count - 1)
            tick = int(newest["tick"][-1]) if len(newest) else BEFORE
        else:
            origin = int(self._trace.origin[0])
            tick = tick_at(instant - origin, self._rate) if origin else BEFORE
        event = KeyEvent(name, down, tick, instant)
        self._recorder.journal_event("key", **asdict(event))
        return event

    def announce(self, event: KeyEvent) -> None:
        """Call all listeners with `event`."""
        for listener in self._listeners:
            listener(event)


def tick_at(elapsed: int, rate: float) -> int:
    """Return the latest tick due `elapsed` [ns] after tick 0 at `rate` [Hz]; `BEFORE` if negative.

    Tick k is due after k/rate, rounded to a nanosecond, as in the servo.
    """
    if elapsed < 0:
        return BEFORE
    tick = int(elapsed * 1e-9 * rate)
    while _due(tick + 1, rate) <= elapsed:
        tick += 1
    while _due(tick, rate) > elapsed:
        tick -= 1
    return tick


def _due(tick: int, rate: float) -> int:
    return int(tick * (1.0 / rate) * 1e9 + 0.5)


# --- advice -----------------------------------------------------------------------------------------------------------


class ParameterAdvice:
    """Checks the elements of a session against the stability bounds of the device.

    Parameters
    ----------
    spec : DeviceSpec
        The device of the session.

    Attributes
    ----------
    record : list of dict
        All advice for the first element, and new warnings for later elements.
    warnings : list of str
        Texts of all warnings, oldest first.
    """

    def __init__(self, spec: DeviceSpec) -> None:
        self._spec = spec
        self._exceeded: set[str] = set()
        self.record: list[dict[str, Any]] = []
        self.warnings: list[str] = []

    def consider(self, element: Element, version: int, scene: Scene | None = None) -> str:
        """Check `element`, in force as `version` of the settings, and the walls of its scene.

        Returns
        -------
        str
            One line with the bounds that are newly exceeded, or an empty string.
        """
        from haptics.design import Severity, advise, advise_walls

        found: list[Advice] = advise(element, self._spec)
        if scene is not None:
            found += advise_walls(scene.walls, element, self._spec)
        warnings = [advice for advice in found if advice.severity is Severity.WARNING]
        new = [advice for advice in warnings if advice.bound not in self._exceeded]
        self._exceeded = {advice.bound for advice in warnings}
        self.record += [{"settings_version": version, **one.as_dict()} for one in (new if version else found)]
        self.warnings += [advice.text for advice in new]
        return " ".join(advice.text for advice in new)
