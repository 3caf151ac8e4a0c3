"""Pairs an element with a device and turns each sample into a command: one compiled call per tick.

This is the only module that negates a force: the friction force of an element has the direction of the motion, so an
impedance device is commanded its opposite. An admittance device is commanded a position reference, the integral of the
element's velocity; where the envelope stops that reference, the element's mass is stopped with it, so nothing winds up.

Words: the *proxy* is the virtual point that slides on the surface. For models A and D it is the integrated reference,
for B and C the end effector minus the elastic displacement.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics._jit import kernel
from haptics.device import Causality, DeviceSpec, State, Vector
from haptics.element_kernels import MODEL_D, PARAMETER_FIELDS, PARAMETERS, STATE_FIELDS, step_element
from haptics.elements import ELEMENTS, Element, write_parameters
from haptics.envelope import NOT_FINITE, Limits, approach, limit_norm, limit_slew, push_inside, sample_flag
from haptics.errors import CausalityError, ConfigurationError
from haptics.trace import Rows

_SAMPLE_FIELDS: list[tuple[Any, ...]] = [
    ("position", "<f8", (2,)),
    ("velocity", "<f8", (2,)),
    ("force", "<f8", (2,)),
    ("sample_age", "<f8"),
]
_ENVELOPE_FIELDS: list[tuple[Any, ...]] = [
    ("admittance", "<i8"),
    ("max_sample_age", "<f8"),
    ("max_norm", "<f8"),
    ("max_rate", "<f8"),
    ("workspace_min", "<f8", (2,)),
    ("workspace_max", "<f8", (2,)),
]
_RENDERING_FIELDS: list[tuple[Any, ...]] = [
    ("started", "<i8"),
    ("reference", "<f8", (2,)),
    ("last", "<f8", (2,)),
    ("command", "<f8", (2,)),
]
CORE = np.dtype(PARAMETER_FIELDS + STATE_FIELDS + _SAMPLE_FIELDS + _ENVELOPE_FIELDS + _RENDERING_FIELDS)
"""Everything a tick needs and changes, in one record."""


# --- kernels ----------------------------------------------------------------------------------------------------


@kernel
def _limited(s: Any, x: float, y: float) -> tuple[float, float, int]:
    """Apply rules 1 (output), 3 and 4 to the force or velocity (x, y); return it with its flags."""
    if not math.isfinite(x + y):
        return 0.0, 0.0, NOT_FINITE
    x, y, limited = limit_norm(x, y, s.max_norm)
    x, y, slew = limit_slew(x, y, s.last[0], s.last[1], s.max_rate * s.period)
    return x, y, limited | slew


@kernel
def _impedance(s: Any, row: Any) -> int:
    """Motion in, force out: the handle gets the opposite of the element's force."""
    step_element(s, s.velocity[0], s.velocity[1])
    row.command_unlimited[0], row.command_unlimited[1] = -s.output[0], -s.output[1]
    x, y, flags = _limited(s, -s.output[0], -s.output[1])
    x, flag_x = push_inside(x, s.position[0], s.workspace_min[0], s.workspace_max[0])
    y, flag_y = push_inside(y, s.position[1], s.workspace_min[1], s.workspace_max[1])
    s.last[0], s.last[1] = x, y
    s.command[0], s.command[1] = x, y
    return flags | flag_x | flag_y


@kernel
def _admittance(s: Any, row: Any) -> int:
    """Force in, motion out: the reference moves on with the element's velocity."""
    T = s.period
    step_element(s, s.force[0], s.force[1])
    row.command_unlimited[0] = s.reference[0] + T * s.output[0]
    row.command_unlimited[1] = s.reference[1] + T * s.output[1]
    vx, vy, flags = _limited(s, s.output[0], s.output[1])
    vx, flag_x = approach(vx, s.reference[0], s.workspace_min[0], s.workspace_max[0], s.max_rate, T)
    vy, flag_y = approach(vy, s.reference[1], s.workspace_min[1], s.workspace_max[1], s.max_rate, T)
    flags |= flag_x | flag_y
    if flags != 0:
        _follow_only(s, vx, vy)
    s.last[0], s.last[1] = vx, vy
    s.reference[0] += T * vx
    s.reference[1] += T * vy
    s.command[0], s.command[1] = s.reference[0], s.reference[1]
    return flags


@kernel
def _follow_only(s: Any, vx: float, vy: float) -> None:
    """Let the virtual mass have moved at the velocity (vx, vy) that the envelope left of the element's output.

    What the reference could not follow must be kept neither as momentum nor, in model D, as tension of a coupling whose
    end stuck while the mass seemed to move on.
    """
    if s.sticking != 0 and s.model == MODEL_D:
        s.displacement[0] -= s.period * (s.output[0] - vx)
        s.displacement[1] -= s.period * (s.output[1] - vy)
    s.mass_velocity[0], s.mass_velocity[1] = vx, vy


@kernel
def _safe_output(s: Any, row: Any) -> None:
    """No trustworthy sample: zero force, or hold the reference. The element waits, its mass at rest, without friction.

    Before its first good sample an admittance device has no reference to hold: the command is nan, not to be written.
    """
    s.sticking = 0
    for i in range(2):
        s.last[i] = 0.0
        s.mass_velocity[i] = 0.0
        s.friction_force[i] = 0.0
        s.sliding_velocity[i] = 0.0
        s.command[i] = s.reference[i] if s.admittance else 0.0
        row.command_unlimited[i] = s.command[i]


@kernel
def render(s: Any, row: Any) -> None:
    """Turn the sample in `s` into a command in `s` and fill the physical columns of the trace `row`."""
    px, py, age = s.position[0], s.position[1], s.sample_age
    flags = sample_flag(px, py, s.velocity[0], s.velocity[1], s.force[0], s.force[1], age, s.max_sample_age)
    if s.started == 0 and flags == 0:  # an admittance device starts where it is: no jump at the first tick
        s.started = 1
        s.reference[0], s.reference[1] = px, py
    if flags != 0:
        _safe_output(s, row)
    elif s.admittance:
        flags = _admittance(s, row)
    else:
        flags = _impedance(s, row)
    for i in range(2):
        row.position[i] = s.position[i]
        row.velocity[i] = s.velocity[i]
        row.force[i] = s.force[i]
        row.command[i] = s.command[i]
        row.proxy[i] = s.reference[i] if s.admittance else s.position[i] - s.displacement[i]
        row.displacement[i] = s.displacement[i]
        row.friction_force[i] = s.friction_force[i]
        row.sliding_velocity[i] = s.sliding_velocity[i]
    row.sample_age = age
    row.sticking = s.sticking
    row.status = flags


@kernel
def _render_slot(
    core: Rows, slots: Rows, slot: int, tick: int, time: float, period_error: float, version: int, timing_flags: int
) -> int:
    """Render the sample in `core` into the trace row `slot`, timing columns included; return its status."""
    row = slots[slot]
    render(core[0], row)
    row.tick = tick
    row.time = time
    row.period_error = period_error
    row.settings_version = version
    row.status |= timing_flags
    return int(row.status)


@kernel
def _render_again(core: Rows, recorded: Rows, rows: Rows) -> None:
    s = core[0]
    for k in range(len(recorded)):
        sample = recorded[k]
        for i in range(2):
            s.position[i] = sample.position[i]
            s.velocity[i] = sample.velocity[i]
            s.force[i] = sample.force[i]
        s.sample_age = sample.sample_age
        render(s, rows[k])


# --- classes ------------------------------------------------------------------------------------------------------


def require_pair(element: Element, spec: DeviceSpec) -> None:
    """Raise unless `element` and the device described by `spec` fit together.

    Raises
    ------
    CausalityError
        If one is an impedance and the other an admittance.
    ConfigurationError
        If the device cannot serve the element's rate.
    """
    if element.causality is not spec.causality:
        fitting = " or ".join(name for name, cls in ELEMENTS.items() if cls.causality is spec.causality)
        raise CausalityError(
            f"model {element.model} is an {element.causality} and {spec.name} an {spec.causality} device: "
            f"use model {fitting} with {spec.name}."
        )
    rate = 1.0 / element.period
    if not spec.rate_min * (1 - 1e-9) <= rate <= spec.rate_max * (1 + 1e-9):
        raise ConfigurationError(
            f"rate = {rate:g} Hz: {spec.name} can be served at {spec.rate_min:g} to {spec.rate_max:g} Hz."
        )


class Rendering:
    """An element in front of a device, behind the envelope.

    Parameters
    ----------
    element : Element
        What is rendered; its state at this moment is where the rendering starts.
    spec : DeviceSpec
        The device's data sheet.
    limits : Limits, optional
        The envelope; the device's own limits by default.

    Attributes
    ----------
    command : (2,) float array
        The command of the last tick.
    version : int
        Version of the settings in force.
    status : int
        Status bits of the last tick (`haptics.trace.Status`).

    Raises
    ------
    CausalityError, ConfigurationError
        See `require_pair`.
    """

    def __init__(self, element: Element, spec: DeviceSpec, limits: Limits | None = None) -> None:
        require_pair(element, spec)
        limits = limits or Limits.of(spec)
        self._core: NDArray[Any] = np.zeros(1, CORE)
        core, state = self._core, element.copy_record()
        for name in state.dtype.names or ():
            core[name] = state[name]
        core["admittance"] = spec.causality is Causality.ADMITTANCE
        core["max_sample_age"] = limits.max_sample_age
        core["max_norm"], core["max_rate"] = limits.pair(spec.causality)
        core["workspace_min"], core["workspace_max"] = spec.workspace_min, spec.workspace_max
        core["reference"] = np.nan  # until the first good sample says where an admittance device is
        self._position, self._velocity, self._force = core["position"][0], core["velocity"][0], core["force"][0]
        self._sample_age = core["sample_age"]
        self.command: Vector = core["command"][0]
        self.version = 0
        self.status = 0

    @property
    def safe_output(self) -> Vector | None:
        """The command that leaves the device safe: zero force, or hold the reference; (2,).

        None for an admittance device that has not given a good sample yet: it has not been told to move either.
        """
        if not self._core["admittance"][0]:
            return np.zeros(2)
        return self._core["reference"][0].copy() if self._core["started"][0] else None

    def configure(self, parameters: NDArray[Any], version: int) -> None:
        """Replace what the element is by a (1,) record of dtype `PARAMETERS`; where it is stays as it is.

        Parameters from another process bring no address for a custom law: that of the law in force is kept.
        """
        address = self._core["law"]["address"].copy()
        for name in PARAMETERS.names or ():
            self._core[name] = parameters[name]
        if self._core["law"]["address"] == 0:
            self._core["law"]["address"] = address
        self.version = version

    def tick(self, state: State, age: float, slots: Rows, slot: int, timing: tuple[int, float, float, int]) -> Vector:
        """Render one sample.

        Parameters
        ----------
        state : State
            The device's sample.
        age : float
            How old it is [s].
        slots, slot
            Trace rows and the index of the one to fill.
        timing : (tick, time, period_error, flags)
            Number and nominal time [s] of the tick, its lateness [s], and the timing bits of its status.

        Returns
        -------
        (2,) float array
            The command; valid until the next call. It is nan, and must not be written, as long as an admittance
            device has not given a good sample.
        """
        self._position[:] = state.position
        self._velocity[:] = state.velocity
        self._force[:] = state.force
        self._sample_age[0] = age
        tick, time, period_error, flags = timing
        self.status = _render_slot(self._core, slots, slot, tick, time, period_error, self.version, flags)
        return self.command

    def again(self, recorded: Rows) -> Rows:
        """Render recorded samples once more; return rows like `recorded` whose physical columns are ours."""
        rows = recorded.copy()
        _render_again(self._core, recorded, rows)
        return rows

    def warm_up(self, slots: Rows) -> None:
        """Compile and touch everything a tick uses, without changing the state."""
        before = self._core.copy()
        self.tick(State(), 0.0, np.zeros_like(slots[:1]), 0, (0, 0.0, 0.0, 0))
        self._core[:] = before


def parameters_of(element: Element) -> NDArray[Any]:
    """Return what `element` is as a (1,) record of dtype `PARAMETERS`, ready for `Rendering.configure`."""
    record = np.zeros(1, PARAMETERS)
    write_parameters(element, record)
    return record
