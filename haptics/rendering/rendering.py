"""Rendering: a program coupled to a device, with one compiled call per tick.

The *proxy* is the virtual point that slides on the surface. For models A and D it is the integrated reference, for B
and C the end effector minus the elastic displacement.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality, DeviceSpec, State, Vector
from haptics.elements.catalogue import FOUR_MODELS
from haptics.elements.kernels import STATE_FIELDS
from haptics.errors import CausalityError, ConfigurationError
from haptics.records import Rows
from haptics.rendering import kernels
from haptics.rendering.envelope import Limits
from haptics.rendering.passivity import prepare_passivity
from haptics.rendering.programs import Motion, Program, SceneElement, parameters_of, write_walls
from haptics.rendering.walls import NO_REGION
from haptics.scenes.walls import PackedWalls


def require_pair(program: Program, spec: DeviceSpec) -> None:
    """Raise unless `program` and the device described by `spec` are compatible.

    Raises
    ------
    CausalityError
        If they have different causality.
    ConfigurationError
        If the device does not support the program's rate.
    """
    if program.causality is not spec.causality:
        fitting = " or ".join(name for name, places in FOUR_MODELS.items() if spec.causality in places)
        remedy = "plan it for this device" if isinstance(program, Motion) else f"use model {fitting} with {spec.name}"
        raise CausalityError(
            f"model {program.model} is an {program.causality} and {spec.name} an {spec.causality} device: {remedy}."
        )
    rate = 1.0 / program.period
    if not spec.rate_min * (1 - 1e-9) <= rate <= spec.rate_max * (1 + 1e-9):
        raise ConfigurationError(
            f"rate = {rate:g} Hz: {spec.name} can be served at {spec.rate_min:g} to {spec.rate_max:g} Hz."
        )


class Rendering:
    """A program coupled to a device through the safety envelope.

    Parameters
    ----------
    program : Element, SceneElement or Motion
        Program to render, which may be an element in any state.
    spec : DeviceSpec
        Specification of the device.
    limits : Limits, optional
        Limits of the envelope; by default the limits of the device.
    eases_down : bool
        Whether the force also eases down after a change of parameters; False for recordings before format 3.

    Attributes
    ----------
    command : (2,) float array
        The command of the last tick.
    core : (1,) structured array
        Record of all inputs, parameters and states of a tick (`haptics.rendering.kernels.CORE`).
    words : (n,) int64 array
        The same memory as 8-byte words.

    Raises
    ------
    CausalityError, ConfigurationError
        See `require_pair`; also if a limit is wider than the device's limit.
    """

    def __init__(
        self, program: Program, spec: DeviceSpec, limits: Limits | None = None, *, eases_down: bool = True
    ) -> None:
        require_pair(program, spec)
        limits = limits or Limits.for_device(spec)
        limits.require_tighter(spec)
        self.core: NDArray[Any] = np.zeros(1, kernels.CORE)
        self.words = self.core.view(np.int64)
        core, state = self.core, program.copy_record()
        for name in state.dtype.names or ():
            core[name] = state[name]
        for name in ("max_sample_age", "plausible_speed", "fade_in", "max_speed", "max_energy"):
            core[name] = getattr(limits, name)
        core["admittance"] = admittance = spec.causality is Causality.ADMITTANCE
        core["eases_down"], core["gate"] = eases_down, 1.0
        core["sensor_range"] = spec.max_force if admittance else math.inf
        core["max_following_error"] = limits.max_following_error if admittance else math.inf
        core["watchdog"] = math.inf if spec.watchdog is None else spec.watchdog
        core["max_norm"] = limits.max_speed if admittance else limits.max_force
        core["max_rate"] = limits.max_acceleration if admittance else limits.max_force_rate
        core["workspace_min"], core["workspace_max"] = spec.workspace_min, spec.workspace_max
        core["heating"] = spec.heating_rate
        core["continuous_force"], core["largest_force"] = spec.continuous_force or math.inf, spec.max_force
        self._spec, self._limits = spec, limits
        self._walls: tuple[PackedWalls, ...] = (PackedWalls(()),)
        self._write_walls(core, program)
        self._present: tuple[Program, ...] = (program,)  # their tables may be in use by the record
        self._element = core.copy()
        self._position, self._velocity, self._force = core["position"][0], core["velocity"][0], core["force"][0]
        self._sample_age, self._permission = core["sample_age"], core["permission"]
        self.command: Vector = core["command"][0]
        self.begin()

    def begin(self) -> None:
        """Reset to the start of a run: unknown device state and zero output."""
        core = self.core
        for name, *_ in STATE_FIELDS:
            core[name] = self._element[name]
        for name, *_ in kernels.RENDERING_FIELDS:
            core[name] = 0
        self._walls[-1].reset_contacts()
        prepare_passivity(core, self._spec, float(core["period"][0]), control=self._limits.passivity_control)
        core["reference"] = np.nan  # unknown until the first good sample of an admittance device
        core["rise"] = core["fade_in"]
        core["last_tick"] = core["good_tick"] = -1
        core["last_gate"] = 1.0
        core["region"] = NO_REGION

    @property
    def safe_outputs(self) -> tuple[Vector, ...]:
        """Commands, each (2,), that lead in sequence to the safe output; see `haptics.rendering.envelope`.

        Empty for an admittance device before its first good sample, because it has not been commanded yet.
        """
        core = self.core
        if not core["admittance"][0]:
            last = core["last"][0]
            return (0.5 * last, 0.0 * last) if last.any() else (0.0 * last,)
        return (core["reference"][0].copy(),) if core["started"][0] else ()

    def configure(self, parameters: NDArray[Any], version: int) -> None:
        """Replace the parameters of the program, keeping its state.

        `parameters` is a (1,) record of dtype `PARAMETERS`. Parameters from another process contain no addresses (of
        the step and of a custom law); the present addresses are kept. A different program number means a new program,
        whose state is reset at the next good sample.
        """
        kernels.configure(self.core, self.words, parameters.view(np.int64))
        self.core["version"] = version

    def switch_program(self, program: Program, number: int, version: int) -> None:
        """Switch at the next tick to another program, or to other parameters if `number` is unchanged.

        Raises
        ------
        CausalityError, ConfigurationError
            See `prepare`.
        """
        self.configure(self.prepare(program, number), version)

    def prepare(self, program: Program, number: int) -> NDArray[Any]:
        """Return the (1,) parameter record of another program and keep its tables alive.

        Raises
        ------
        CausalityError, ConfigurationError
            See `require_pair`; also if its period differs.
        """
        require_pair(program, self._spec)
        if program.period != self.core["period"][0]:
            raise ConfigurationError(f"period = {program.period:g} s: a run keeps its period.")
        self._present = (*self._present[-2:], program)
        parameters = parameters_of(program, number)
        self._write_walls(parameters, program)
        return parameters

    def _write_walls(self, record: NDArray[Any], program: Program) -> None:
        """Write the walls of a program into its record; unchanged walls keep their contact state."""
        walls = program.scene.walls if isinstance(program, SceneElement) else ()
        if walls != self._walls[-1].walls:
            self._walls = (*self._walls[-2:], PackedWalls(walls))
        write_walls(record, self._walls[-1], self._spec.causality)

    @property
    def arrived(self) -> bool:
        """Whether a motion has reached its end."""
        core = self.core
        return bool(core["sticking"][0] and core["follower"]["begun"][0] and not core["fresh"][0])

    def tick(
        self,
        state: State,
        age: float,
        slots: Rows,
        slot: int,
        timing: tuple[int, float, float, int],
        permission: int = 0,
    ) -> Vector:
        """Render one sample.

        Parameters
        ----------
        state : State
            Sample of the device.
        age : float
            Age of the sample [s].
        slots, slot
            Trace rows and the index of the one to fill.
        timing : (tick, time, period_error, flags)
            Number and nominal time [s] of the tick, its lateness [s], and the timing bits of its status.
        permission : int
            Further inputs of the envelope (`haptics.records.Permission`).

        Returns
        -------
        (2,) float array
            Command, valid until the next call. It is nan and must not be written before the first good sample of an
            admittance device.
        """
        self._position[:] = state.position
        self._velocity[:] = state.velocity
        self._force[:] = state.force
        self._sample_age[0] = age
        self._permission[0] = permission
        tick, time, period_error, flags = timing
        kernels.render_slot(self.core, slots, slot, tick, time, period_error, flags)
        return self.command

    def recompute(self, recorded: Rows) -> Rows:
        """Render recorded samples again; return a copy of the rows with recomputed physical columns."""
        rows = recorded.copy()
        kernels.render_again(self.core, recorded, rows)
        return rows
