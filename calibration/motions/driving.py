"""Execution of a procedure on a device, with envelope, dead-man's switch, certificate and recording."""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from calibration.motions.live import Live
from calibration.motions.mover import Mover
from calibration.motions.offline import run_offline
from calibration.motions.present import Present
from calibration.motions.procedure_runner import Procedure, ProcedureRunner
from calibration.motions.stage import Stage
from haptics.device import DeviceSpec
from haptics.errors import ConfigurationError
from haptics.recording.recorder import Recorder
from haptics.recording.recording import Recording
from haptics.rendering.envelope import Limits
from haptics.rendering.motion import Motion

Progress = Callable[[float], None]
"""Callback with the elapsed time [s]."""


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
        Device to move.
    procedure : Procedure
        Procedure that has not been started.
    folder : Path
        Folder of the recording; must not exist.
    facts : mapping, optional
        Additional metadata of the recording; its table ``configuration`` is completed.
    progress : callable, optional
        Callback with the elapsed time [s].
    warn : callable, optional
        Callback for warnings.
    present : Present, optional
        Observer of the run.
    settings : mapping, optional
        Settings of the procedure, dataclasses by the names of their tables in ``configuration``.

    Raises
    ------
    ConfigurationError
        If the device cannot be used in this way. Exceptions of the procedure are passed through.
    DeviceNotFoundError, DeviceOpenError
        If the device cannot be opened; no recording is created.
    DeviceFault, ServoLost
        If the device fails, or a motion is not followed. The recording is kept.
    """
    spec = mover.spec
    limits = _limits(spec)
    with contextlib.closing(ProcedureRunner(procedure)) as course:
        tables = {name: asdict(one) for name, one in (settings or {}).items()}
        recorder = Recorder(folder, _facts(mover, spec, limits, facts or {}, tables))
        course.save_motion(recorder)
        stage = Stage(mover, course, spec, limits, recorder, progress, warn, present or Present())
        if mover.live:
            Live(stage).run()
        else:
            run_offline(stage)
    return Recording(folder)


def _facts(
    mover: Mover, spec: DeviceSpec, limits: Limits, more: Mapping[str, Any], tables: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the metadata of a recording before its first tick."""
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
    """Return the safety envelope of the device."""
    if spec.dead_man == "key":
        raise ConfigurationError(
            f"{spec.name} gives force only while a key of the live view is held, which a calibration does not have."
        )
    return Limits.for_device(spec)
