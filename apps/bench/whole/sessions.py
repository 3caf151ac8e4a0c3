"""Offline sessions of benchmarks: model C on the virtual joystick with a simulated hand."""

from __future__ import annotations

import functools
from collections.abc import Callable

from apps.bench.workload import plainest
from devices import create_device
from haptics.clock import Clock
from haptics.device import Causality, Device
from haptics.servo.offline import OfflineJob, run_all, run_offline

MANY = 8
"""Sessions per slice."""


def session(seed: int, duration: float) -> OfflineJob:
    """Return a session of `duration` [s] whose hand has the given seed."""
    return OfflineJob(functools.partial(_joystick, seed), plainest(Causality.IMPEDANCE), duration)


def _joystick(seed: int, clock: Clock) -> Device:
    return create_device("virtual-joystick", {"seed": seed}, clock=clock)


def together(duration: float) -> Callable[[], object]:
    """Return a function that runs `MANY` sessions in one call of compiled code."""
    jobs = [session(seed, duration) for seed in range(MANY)]
    return lambda: run_all(jobs)


def alone(duration: float) -> Callable[[], object]:
    """Return a function that runs `MANY` sessions one by one, each with a separate trace."""
    jobs = [session(seed, duration) for seed in range(MANY)]
    return lambda: [run_offline(job.factory, job.program, job.duration) for job in jobs]
