"""Construction of the servo job of a session, with fault injection around its device."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import devices
from apps.settings.config import SessionConfig
from devices.common.log import DEVICE_LOG
from devices.faults import Fault, create_faulty
from haptics.servo.control import Job, SharedFiles


def make_job(config: SessionConfig, faults: Sequence[Fault], recording: Path) -> Job:
    """Return the job of a session.

    Parameters
    ----------
    config : SessionConfig
        The session.
    faults : sequence of Fault
        Faults to inject into the device.
    recording : Path
        Folder of the recording. A virtual or emulated device that runs in real time also writes its log there.
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
        paths=SharedFiles.unique(),
        real_time=config.servo,
        live=live,
    )
