"""What the servo process of a session is to do: its device, with faults on demand around it, and all it must know."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import devices
from apps.session.config import SessionConfig
from devices.faults import Fault, FaultyDevice
from haptics.clock import Clock
from haptics.device import Device, DeviceSpec
from haptics.job import Job, Paths

DEVICE_LOG = "device_log.npy"


def make_job(config: SessionConfig, spec: DeviceSpec, faults: Sequence[Fault], recording: Path) -> Job:
    """Return the job of a session.

    Parameters
    ----------
    config : SessionConfig
        The session.
    spec : DeviceSpec
        Its device.
    faults : sequence of Fault
        What goes wrong with the device on demand.
    recording : Path
        Folder of the recording, where a virtual or emulated device keeps its log, too.
    """
    settings = dict(config.device_settings)
    if devices.has_simulated_hand(config.device, settings):
        settings.setdefault("log", str(recording / DEVICE_LOG))
    return Job(
        factory=functools.partial(_make_device, config.device, settings, faults, config.session.seed),
        element=config.make_element(),
        limits=config.make_limits(spec),
        duration=config.session.duration,
        recording=recording,
        paths=Paths.unique(),
        real_time=config.servo,
    )


def _make_device(name: str, settings: dict[str, Any], faults: Sequence[Fault], seed: int, clock: Clock) -> Device:
    """Build the device inside the servo process, with its faults on demand around it."""
    device = devices.create_device(name, settings, clock=clock)
    return FaultyDevice(device, faults, clock, seed) if faults else device
