"""What the servo process of a session is to do: its device, with faults on demand around it, and all it must know."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import devices
from apps.settings.config import SessionConfig
from devices.common.log import DEVICE_LOG
from devices.faults import Fault, create_faulty
from haptics.servo.job import Job, Paths


def make_job(config: SessionConfig, faults: Sequence[Fault], recording: Path) -> Job:
    """Return the job of a session.

    Parameters
    ----------
    config : SessionConfig
        The session.
    faults : sequence of Fault
        What goes wrong with the device on demand.
    recording : Path
        Folder of the recording, where a virtual or emulated device on the wall's clock keeps its log, too.
    """
    settings = dict(config.device_settings)
    live = config.session.clock == "wall"
    if live and devices.has_simulated_hand(config.device, settings):
        settings.setdefault("log", str(recording / DEVICE_LOG))
    return Job(
        factory=functools.partial(create_faulty, config.device, settings, faults, config.session.seed),
        element=config.program,
        limits=config.limits,
        duration=config.session.duration,
        recording=recording,
        paths=Paths.unique(),
        real_time=config.servo,
        live=live,
    )
