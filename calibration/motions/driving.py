"""Running a procedure on a device, with envelope, dead-man, certificate and recording."""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from calibration.motions.course import Course, Procedure
from calibration.motions.live import Live
from calibration.motions.mover import Mover
from calibration.motions.offline import run_offline
from calibration.motions.present import Present
from calibration.motions.stage import Stage
from haptics.device import DeviceSpec
from haptics.errors import ConfigurationError
from haptics.recording.recorder import Recorder
from haptics.recording.recording import Recording
from haptics.rendering.envelope import Limits
from haptics.rendering.motion import Motion

Progress = Callable[[float], None]
"""Gets the time that has gone by [s], now and then."""


def drive(
    mover: Mover,
    procedure: Procedure,
    folder: Path,
    facts: Mapping[str, Any] | None = None,
    progress: Progress = lambda seconds: None,
    warn: Callable[[str], None] = lambda words: None,
    present: Present | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
) -> Recording:
    """Run a procedure to its end and return the recording.

    Parameters
    ----------
    mover : Mover
        What is moved.
    procedure : Procedure
        What it does, not yet begun.
    folder : Path
        The recording, which does not exist yet.
    facts : mapping, optional
        What the recording is to say besides; its table ``configuration`` is completed.
    progress : callable, optional
        Gets the time that has gone by [s].
    warn : callable, optional
        Takes what went wrong besides, in words.
    present : Present, optional
        Is to look at the run.
    settings : mapping, optional
        What the procedure goes by, dataclasses by the names of their tables in ``configuration``.

    Raises
    ------
    ConfigurationError
        If the device cannot be used so. Whatever the procedure raises comes out as it is.
    DeviceNotFoundError, DeviceOpenError
        If it cannot be opened; then there is no recording.
    DeviceFault, ServoLost
        If it fails, or a motion is not followed. What was recorded stays.
    """
    spec = mover.spec
    limits = _limits(spec)
    with contextlib.closing(Course(procedure)) as course:
        tables = {name: asdict(one) for name, one in (settings or {}).items()}
        recorder = Recorder(folder, _facts(mover, spec, limits, facts or {}, tables))
        course.note(recorder)
        stage = Stage(mover, course, spec, limits, recorder, progress, warn, present or Present())
        if mover.live:
            Live(stage).run()
        else:
            run_offline(stage)
    return Recording(folder)


def _facts(
    mover: Mover, spec: DeviceSpec, limits: Limits, more: Mapping[str, Any], tables: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a recording says before its first tick."""
    configuration = {
        "session": {"model": Motion.model, "rate": mover.rate},
        "device": dict(mover.device),
        **more.get("configuration", {}),
        **tables,
    }
    return {
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
        "device": {name: None if value == math.inf else value for name, value in asdict(spec).items()},
        "model": Motion.model,
        "rate_hz": mover.rate,
        "limits": asdict(limits),
        **more,
        "configuration": configuration,
    }


def _limits(spec: DeviceSpec) -> Limits:
    """Return the envelope: that of the device."""
    if spec.dead_man == "key":
        raise ConfigurationError(
            f"{spec.name} gives force only while a key of the live view is held, which a calibration does not have."
        )
    return Limits.of(spec)
