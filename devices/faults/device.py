"""Fault injection: a device whose samples and commands are spoilt on demand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from devices import create_device
from devices.faults.effects import Effect, Situation, copied
from devices.faults.table import FAULTS, Fault
from haptics.clock import Clock
from haptics.device import Device, DeviceSpec, State, Vector


class FaultyDevice:
    """A device with faults on demand.

    The device itself lives on: it is read at every ``read``, only then the fault comes in between, and ``close`` always
    reaches it. What else it has to offer, such as the ``hand`` of a virtual device, can be asked for as before.

    Parameters
    ----------
    device : Device
        The good one, of either causality.
    faults : iterable of Fault
        Several at once are like stations on the way: a sample passes through them in this order.
    clock : Clock
        The run's clock: the nominal time decides when a fault begins and ends.
    seed : int
        Decides everything random.
    """

    def __init__(self, device: Device, faults: Iterable[Fault], clock: Clock, seed: int = 0) -> None:
        self._device = device
        self._faults = tuple(faults)
        self._clock = clock
        self._seed = seed
        self._opened = False
        self._effects = self._make_effects()

    @property
    def spec(self) -> DeviceSpec:
        """The data sheet of the device."""
        return self._device.spec

    def open(self) -> None:
        """Open the device; faults of an earlier run are forgotten."""
        if not self._opened:
            self._effects = self._make_effects()
        self._device.open()
        self._opened = True

    def read(self) -> State:
        """Return what the faults left of the newest sample, or raise `OSError`; the hand's true force stays true."""
        state, now = copied(self._device.read()), self._clock.time
        hand_force = state.hand_force
        for effect in self._effects:
            state = effect.read(state, now)
        state = copied(state)
        state.hand_force = hand_force
        return state

    def write(self, command: Vector) -> None:
        """Pass on what the faults leave of the command, (2,), or raise `OSError`."""
        now = self._clock.time
        for effect in self._effects:
            command = effect.write(command, now)
        self._device.write(command)

    def close(self) -> None:
        """Close the device."""
        self._opened = False
        self._device.close()

    def __enter__(self) -> Self:
        """Open the device."""
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the device."""
        self.close()

    def explain(self) -> str:
        """Say nothing: what fails here was asked for."""
        return ""

    def __getattr__(self, name: str) -> Any:
        """Return what else the device has to offer."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        return getattr(self._device, name)

    def _make_effects(self) -> list[Effect]:
        spec, seed = self._device.spec, self._seed
        return [
            FAULTS[fault.name].effect(Situation(fault.start, fault.length, spec, seed + k))
            for k, fault in enumerate(self._faults)
        ]


def create_faulty(name: str, settings: Mapping[str, Any], faults: Sequence[Fault], seed: int, clock: Clock) -> Device:
    """Build the device `name`, with its faults on demand around it, if there are any; see `devices.create_device`."""
    device = create_device(name, settings, clock=clock)
    return FaultyDevice(device, faults, clock, seed) if faults else device
