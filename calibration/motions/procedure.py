"""Procedures that move a device: the device, the running procedure, and the rows recorded during its motions."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibration.data.joint_recording import Source
from devices import has_simulated_hand, is_virtual
from devices.faults import Fault, create_faulty
from haptics.clock import Clock
from haptics.device import Device, DeviceSpec, Vector
from haptics.errors import DeviceFault
from haptics.recording.recorder import Recorder
from haptics.recording.recording import Recording
from haptics.recording.tick_file import digest_of
from haptics.records import Permission, Rows
from haptics.rendering.envelope import UNUSABLE
from haptics.rendering.programs import Motion, save_motion
from haptics.servo.realtime import RealTimeSettings
from haptics.trace import Trace

RATE = 1000.0
"""Default tick rate of a calibration [Hz]."""


@dataclass(frozen=True)
class Mover:
    """Device to be moved, not yet created.

    Attributes
    ----------
    factory : callable
        Creates the device from settings that depend on the recording (``log``) and a clock; picklable.
    live : bool
        Whether to run in real time in a servo process, or as fast as possible in this process.
    rate : float
        Ticks per second [Hz].
    device : dict
        Name and settings of the device, for the recording.
    logs : bool
        Whether it can write a log of its commands.
    real_time : RealTimeSettings
        Requests to the operating system.
    clock_of : callable or None
        Returns the clock of a device that has a separate one, such as a device emulated in this process.
    """

    factory: Callable[[Mapping[str, Any], Clock], Device]
    live: bool
    rate: float = RATE
    device: Mapping[str, Any] = field(default_factory=dict)
    logs: bool = False
    real_time: RealTimeSettings = field(default_factory=RealTimeSettings)
    clock_of: Callable[[Any], Clock] | None = None

    @classmethod
    def of(
        cls, name: str, settings: Mapping[str, Any], faults: Sequence[Fault] = (), *, live: bool | None = None
    ) -> Mover:
        """Return the mover of the device `name` with its `settings`; in real time unless it is virtual."""
        return cls(
            functools.partial(_make, name, dict(settings), tuple(faults)),
            live=not is_virtual(name) if live is None else live,
            device={  # without objects, such as a hand, which a file cannot contain
                "name": name,
                **{
                    key: value
                    for key, value in settings.items()
                    if isinstance(value, Mapping | Sequence | bool | int | float | None)
                },
            },
            logs=has_simulated_hand(name, settings),
        )

    @property
    def period(self) -> float:
        """Time between two ticks [s]."""
        return 1.0 / self.rate

    def make(self) -> Device:
        """Return a new device for inspection, not open, and separate from the device that will be moved."""
        return self.factory({}, Clock(self.period))

    @property
    def spec(self) -> DeviceSpec:
        """Data sheet of the device, without opening it."""
        return self.make().spec


def _make(
    name: str, settings: dict[str, Any], faults: tuple[Fault, ...], more: Mapping[str, Any], clock: Clock
) -> Device:
    own = {**settings, **more}
    return create_faulty(name, own, faults, int(own.get("seed", 0)), clock)


class Present:
    """Observer of a run.

    Attributes
    ----------
    trace : Trace or None
        Trace of the present or latest run.
    """

    def __init__(self) -> None:
        self.trace: Trace | None = None

    @property
    def position(self) -> Vector:
        """Position of the end effector at the latest tick, (2,) [m]; nan before the first."""
        if self.trace is None or not self.trace.count:
            return np.full(2, np.nan)
        return np.array(self.trace.since(self.trace.count - 1)["position"][-1])


Procedure = Generator[Motion, Rows, None]
"""Generator that yields motions and receives, for each of them, the rows recorded during it, in order."""


PATIENCE = 10.0
"""Time after which an unfinished motion raises an error, beyond its duration [s].

Only time with the dead-man's switch held counts.
"""


class ProcedureRunner:
    """Executor of a procedure that writes each motion to the recording before it becomes active.

    Parameters
    ----------
    procedure : Procedure
        Generator that has not been started.

    Attributes
    ----------
    motion : Motion
        Present motion, active or about to be.
    number : int
        Index of the motion in the run, which equals the version of the settings, because nothing else changes them.
    """

    def __init__(self, procedure: Procedure) -> None:
        self._procedure = procedure
        self.motion = next(procedure)
        self.number = 0
        self._watched, self._begun = -1, 0

    def save_motion(self, recorder: Recorder) -> dict[str, Any]:
        """Write the motion to a recording; return its journal entry."""
        entry = save_motion(recorder.folder, self.motion, self.number)
        recorder.journal_settings(self.number, entry)
        return {"version": self.number, **entry}

    def advance(self, rows: Rows) -> bool:
        """Send all recorded rows to the procedure; return True if it yields another motion."""
        versions = rows["settings_version"]
        first, last = (np.searchsorted(versions, self.number, side=side) for side in ("left", "right"))
        try:
            self.motion = self._procedure.send(np.array(rows[first:last]))
        except StopIteration:
            return False
        self.number += 1
        return True

    def require_progress(self, tick: int, permission: int) -> None:
        """Raise `DeviceFault` if the present motion should have finished long before `tick`."""
        if self._watched != self.number or permission & Permission.RELEASED:
            self._watched, self._begun = self.number, tick
        if (tick - self._begun) * self.motion.period > self.motion.duration + PATIENCE:
            raise DeviceFault(
                f"the motion {self.motion.label!r} did not finish by tick {tick}, because samples were rejected "
                "repeatedly: make sure that nothing blocks or pulls the device."
            )

    def close(self) -> None:
        """Close the procedure, unless a thread is still executing it."""
        with contextlib.suppress(ValueError):
            self._procedure.close()


def usable_rows(rows: Rows) -> Rows:
    """Return the rows with valid samples; others may hold arbitrary values including nan."""
    usable: Rows = rows[(rows["status"] & UNUSABLE) == 0]
    return usable


def known_rows(rows: Rows) -> Rows:
    """Return `usable_rows`.

    Raises
    ------
    DeviceFault
        If there are no valid rows.
    """
    known = usable_rows(rows)
    if not len(known):
        raise DeviceFault(
            f"none of {len(rows)} samples could be used, so the position of the handle is unknown: check the flags "
            "of the recording, and the cable of the device."
        )
    return known


def source_of(recording: Recording) -> Source:
    """Return the source of measurements in a recording."""
    device = recording.metadata.get("device", {})
    name = f"{device.get('name', '')} {device.get('identity', '')}".strip()
    return Source(str(recording.folder), digest_of(recording.ticks), name)


def rows_of(recording: Recording) -> Iterator[tuple[str, Rows]]:
    """Yield the label and the rows of every motion in a recording.

    Rows of other programs are skipped. The last row of a finished motion has ``sticking`` set.
    """
    ranges: dict[int, tuple[int, int]] = {}  # of rows, by the version of the settings
    place = 0
    for rows in recording.chunks(("settings_version",)):
        versions = rows["settings_version"]
        edges = [0, *(np.flatnonzero(np.diff(versions)) + 1).tolist(), len(versions)]
        for begin, end in itertools.pairwise(edges):
            version = int(versions[begin])
            ranges[version] = ranges.get(version, (place + begin, 0))[0], place + end
        place += len(versions)
    for entry in recording.settings:
        motion = entry.get("motion")
        if entry.get("model") == Motion.model and isinstance(motion, dict):
            yield str(motion.get("label", "")), recording.read(*ranges.get(int(entry["version"]), (0, 0)))


def complete_rounds(recording: Recording, names: Sequence[str]) -> list[list[Rows]]:
    """Return the rows of every finished motion by the first word of its label, in the order of `names`."""
    found: list[list[Rows]] = [[] for _ in names]
    for label, rows in rows_of(recording):
        name = label.partition(" ")[0]
        if name in names and len(rows) and rows["sticking"][-1]:
            found[names.index(name)].append(rows)
    return found
