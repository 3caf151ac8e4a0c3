"""What the tests of faults share: devices of both causalities, good and bad, and their samples."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pytest

import devices
from devices.faults import FAULTS, FaultyDevice, parse_fault
from haptics.clock import Clock
from haptics.device import Causality, Device, State
from tests.haptics.doubles import BenchDevice

PERIOD = 1e-3
DEVICES: dict[str, Callable[[Clock], Device]] = {
    "bench-impedance": BenchDevice,
    "bench-admittance": lambda clock: BenchDevice(clock, Causality.ADMITTANCE, max_force=10.0),
    "virtual-joystick": lambda clock: devices.create_device("virtual-joystick", clock=clock),
    "virtual-arm": lambda clock: devices.create_device("virtual-arm", clock=clock),
}
VECTORS = ("position", "velocity", "force")
RAISING = ("read-error", "write-error", "unplug")
SPOILING = [name for name in FAULTS if name not in (*RAISING, "hang", "ignored", "saturation")]
SAMPLE = np.dtype([("time", "<f8"), *((name, "<f8", (2,)) for name in VECTORS)])
Samples = np.ndarray[Any, np.dtype[Any]]

every_device = pytest.mark.parametrize("device", DEVICES)


class Rig(NamedTuple):
    clock: Clock
    inner: Any
    device: FaultyDevice


def rig(device: str, *faults: str, seed: int = 0) -> Rig:
    clock = Clock(PERIOD)
    inner = DEVICES[device](clock)
    faulty = FaultyDevice(inner, [parse_fault(text) for text in faults], clock, seed)
    faulty.open()
    return Rig(clock, inner, faulty)


def as_row(state: State) -> tuple[Any, ...]:
    return (state.time, *(getattr(state, name).copy() for name in VECTORS))


def drive(clock: Clock, device: Device, ticks: Iterable[int]) -> Samples:
    """Read at every tick and give no command: then the plant moves alike, whatever its samples became."""
    rows = []
    for tick in ticks:
        clock.wait(tick)
        rows.append(as_row(device.read()))
    return np.array(rows, SAMPLE)


def samples(device: str, *faults: str, ticks: int = 80, seed: int = 0) -> Samples:
    clock, _, faulty = rig(device, *faults, seed=seed)
    return drive(clock, faulty, range(ticks))


def assert_values(got: Samples, expected: Samples) -> None:
    for name in VECTORS:
        np.testing.assert_array_equal(got[name], expected[name])
