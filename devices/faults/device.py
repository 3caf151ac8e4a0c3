"""Wrapper that injects faults into the samples and commands of a device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from devices import create_device
from devices.faults.effects import Effect, Situation, copied
from devices.faults.table import FAULTS, Fault
from haptics.clock import Clock
from haptics.device import Device, DeviceSpec, State, Vector


class FaultyDevice:
    """Device with injected faults.

    The wrapped device remains active: it is read at every ``read`` before the faults are applied, and ``close`` always
    reaches it. Other attributes of the device, such as the ``hand`` of a virtual device, remain available.

    Parameters
    ----------
    device : Device
        Wrapped device of either causality.
    faults : iterable of Fault
        Faults; a sample passes through them in this order.
    clock : Clock
        Clock of the run; its nominal time determines the start and end of a fault.
    seed : int
        Seed of the random numbers.
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
        """Data sheet of the device."""
        return self._device.spec

    def open(self) -> None:
        """Open the device and reset all faults."""
        if not self._opened:
            self._effects = self._make_effects()
        self._device.open()
        self._opened = True

    def read(self) -> State:
        """Return the newest sample with all faults applied, or raise `OSError`.

        The true force of the hand is not modified.
        """
        state, now = copied(self._device.read()), self._clock.time
        hand_force = state.hand_force
        for effect in self._effects:
            state = effect.read(state, now)
        state = copied(state)
        state.hand_force = hand_force
        return state

    def write(self, command: Vector) -> None:
        """Write the command, (2,), with all faults applied, or raise `OSError`."""
        now = self._clock.time
        for effect in self._effects:
            command = effect.write(command, now)
        self._device.write(command)

    def close(self) -> None:
        """Close the device."""
        self._opened = False
        self._device.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def explain(self) -> str:
        """Return an empty string, because the failures are intended."""
        return ""

    def __getattr__(self, name: str) -> Any:
        """Return other attributes of the wrapped device."""
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
    """Create the device `name`, wrapped if there are `faults`; see `devices.create_device`."""
    device = create_device(name, settings, clock=clock)
    return FaultyDevice(device, faults, clock, seed) if faults else device
