"""The four friction elements of Kikuuwe et al. 2006: models A to D.

=====================  =====  ==========  ==============================================  ========
class                  model  causality   description                                     equation
=====================  =====  ==========  ==============================================  ========
`RigidAdmittance`      A      admittance  a mass on a frictional surface                  (26)
`InertialImpedance`    B      impedance   that mass, pulled through a spring and damper   (36)
`MasslessImpedance`    C      impedance   a spring and damper ending on the surface       (38)
`CompliantAdmittance`  D      admittance  a mass, spring and damper ending on the surface (45)
=====================  =====  ==========  ==============================================  ========

Every implicit Euler step is solved exactly, and a sticking contact has a velocity of exactly zero. The friction force
has the direction of the sliding velocity: it *opposes* the motion when subtracted, as in ``M dv/dt = h - f``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.device import Causality, Vector
from haptics.elements import kernels
from haptics.errors import ConfigurationError
from haptics.friction.laws import Law, warn_if_ambiguous
from haptics.jit import kernel
from haptics.records import Rows, fields
from haptics.settings import Checked, bounded, documented

STEADIER = "a larger stiffness, damping or mass, or a higher rate"
"""Remedy in the warning about an element whose mobility is too large for its law."""

PERIOD: dict[str, Any] = {"above": 0.0, "maximum": 1.0, "unit": "s", "doc": "time T between two steps"}
MASS: dict[str, Any] = {"unit": "kg", "slider": (0.01, 20.0), "doc": "mass M that slides on the surface"}
STIFFNESS: dict[str, Any] = {"unit": "N/m", "slider": (100.0, 50000.0)}
DAMPING: dict[str, Any] = {"minimum": 0.0, "unit": "N s/m", "slider": (0.1, 1000.0)}
"""Common properties of the fields of elements."""

_STIFFNESS = {**STIFFNESS, "minimum": 0.0, "doc": "stiffness K of the virtual coupling"}
_DAMPING = {**DAMPING, "doc": "damping B of the virtual coupling"}


class Element(Checked, section="element"):
    """Friction element: frozen parameters and a small state that `step` advances.

    Attributes
    ----------
    law : Law
        Friction law of the contact.
    period : float
        Nominal time between two steps [s].
    kernel_parameters : tuple of str
        Names of the additional parameters of this model, in the order in which its kernel reads them.
    law_evaluation : {"implicit", "level", "force"}
        Use of the law in a step: its implicit counterpart is solved, its level is evaluated at a known speed (which
        requires an isotropic law), or its force at a known velocity.
    """

    model: ClassVar[str]
    kind: ClassVar[int]
    causality: ClassVar[Causality]
    kernel_parameters: ClassVar[tuple[str, ...]] = ()
    law_evaluation: ClassVar[Literal["implicit", "level", "force"]] = "implicit"
    law: Law
    period: float
    _record: NDArray[Any]

    @property
    def mobility(self) -> float:
        """Mobility Z [m/(N s)] with which the element's step solves its friction law; 0 if it evaluates the law."""
        return 0.0

    @property
    def coupling_stiffness(self) -> float:
        """Stiffness [N/m] of the sticking contact, 0 for a rigid element."""
        return float(getattr(self, "stiffness", 0.0))

    @property
    def numbers(self) -> tuple[float, ...]:
        """Values of the `kernel_parameters`."""
        return tuple(getattr(self, name) for name in self.kernel_parameters)

    def __post_init__(self) -> None:
        if not isinstance(self.law, Law):
            raise ConfigurationError(f"law = {self.law!r}: must be a friction law such as Coulomb(4.0).")
        super().__post_init__()
        if self.law_evaluation == "implicit":
            warn_if_ambiguous(self.law, self.mobility, STEADIER, depth=4)
        elif self.law_evaluation == "level" and not self.law.isotropic:
            raise ConfigurationError(
                f"law.name = {self.law.name!r}: model {self.model} needs a law that is the same in all directions."
            )
        object.__setattr__(self, "_record", np.zeros(1, kernels.ELEMENT))  # the dataclass is frozen
        write_parameters(self, self._record)

    def reset(self, velocity: ArrayLike = (0.0, 0.0)) -> None:
        """Reset displacement and force to zero and set the velocity of the mass (A, B, D), (2,) [m/s]."""
        start = _finite_pair(velocity, "velocity")
        for name, *_ in kernels.STATE_FIELDS:
            self._record[name] = 0
        self._record["mass_velocity"] = start
        self._record["sliding_velocity"] = start

    def step(self, input: ArrayLike) -> Vector:  # noqa: A002 (name defined by the interface)
        """Advance the element by one period.

        Parameters
        ----------
        input : (2,) array
            Admittance: force of the hand [N]; impedance: velocity of the end effector [m/s].

        Returns
        -------
        (2,) float array
            Admittance: velocity of the mass [m/s]; impedance: force [N], to be subtracted from the force of the hand.

        Raises
        ------
        ConfigurationError
            If the input is not finite, which would corrupt the state permanently.
        """
        x, y = _finite_pair(input, "input")
        kernels.step_record(self._ready_record, x, y)
        return np.array(self._record["output"][0])

    def __copy__(self) -> Self:
        """Return an independent element in the same state."""
        twin = replace(self)  # type: ignore[type-var]
        twin._record[:] = self._record
        return twin

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the pickled state and rewrite the parameters.

        The compiled function of a custom law has another address in this process.
        """
        self.__dict__.update(state)
        write_parameters(self, self._record)

    def copy_record(self) -> NDArray[Any]:
        """Return a copy of the kernel record, (1,) of dtype `ELEMENT`: parameters and state."""
        return self._ready_record.copy()

    @property
    def _ready_record(self) -> NDArray[Any]:
        """Kernel record with the address of the compiled step, which is compiled on first use."""
        if not self._record["step"][0]:
            self._record["step"] = kernels.step_address(self.kind, int(self._record["law"]["kind"][0]))
        return self._record

    def fill(self, record: NDArray[Any]) -> None:
        """Write the parameters, with the address of the compiled step, to a (1,) `record`; see `write_parameters`."""
        write_parameters(self, record)
        record["step"] = kernels.step_address(self.kind, int(record["law"]["kind"][0]))

    @property
    def friction_force(self) -> Vector:
        """Friction force f on the contact after the last step, (2,) [N]."""
        return np.array(self._record["friction_force"][0])

    @property
    def displacement(self) -> Vector:
        """Elastic displacement e of the virtual coupling, (2,) [m]; zeros for a rigid element."""
        return np.array(self._record["displacement"][0])

    @property
    def velocity(self) -> Vector:
        """Sliding velocity v of the contact, (2,) [m/s], the argument of the law."""
        return np.array(self._record["sliding_velocity"][0])

    @property
    def sticking(self) -> bool:
        """True if the contact is at rest."""
        return bool(self._record["sticking"][0])


def write_parameters(element: Element, record: NDArray[Any]) -> None:
    """Write the parameters of `element` to a (1,) `record` with the fields of `PARAMETERS`.

    State fields are not changed. The address of the step is set to 0; see `Element.fill`.
    """
    record["step"] = 0
    record["model"] = element.kind
    record["law"] = element.law.record
    record["numbers"][0][: len(element.numbers)] = element.numbers
    record["stiffness"] = element.coupling_stiffness
    for name in ("mass", "damping", "period"):
        record[name] = getattr(element, name, 0.0)
    record["mobility"] = element.mobility
    record["scene"] = 0


def functions_of(element: Element) -> tuple[int, int, str]:
    """Return the key of the step kernel: kind of the element, kind of its law, source of a custom law."""
    return element.kind, int(element.law.record["kind"][0]), str(getattr(element.law, "source", ""))


def _finite_pair(value: ArrayLike, name: str) -> tuple[float, float]:
    try:
        x, y = map(float, value)  # type: ignore[arg-type]
        if math.isfinite(x) and math.isfinite(y):
            return x, y
    except (TypeError, ValueError):
        pass
    raise ConfigurationError(f"{name} = {value!r}: must be two finite numbers.")


def _require_coupling(impedance: float) -> None:
    if not impedance > 0.0:
        raise ConfigurationError("element.stiffness = 0 with element.damping = 0: at least one must be greater than 0.")


@documented
@dataclass(frozen=True, eq=False)
class RigidAdmittance(Element, model="A", kind=kernels.MODEL_A, causality=Causality.ADMITTANCE):
    """Model A: a mass sliding on a surface; force in, velocity out.

    See Kikuuwe et al. 2006, (12), (13), (26).

    Attributes
    ----------
    law : Law
        Friction law of the surface.
    """

    law: Law
    mass: float = bounded(usual=2.0, above=0.0, **MASS)
    period: float = bounded(1e-3, **PERIOD)

    @property
    def mobility(self) -> float:
        """T/M."""
        return self.period / self.mass


@documented
@dataclass(frozen=True, eq=False)
class InertialImpedance(Element, model="B", kind=kernels.MODEL_B, causality=Causality.IMPEDANCE):
    """Model B: model A pulled through a spring and damper; velocity in, force out.

    See Kikuuwe et al. 2006, (29)-(36). Without mass it is identical to model C.

    Attributes
    ----------
    law : Law
        Friction law of the surface.
    """

    law: Law
    mass: float = bounded(usual=0.1, minimum=0.0, **MASS)
    stiffness: float = bounded(usual=6000.0, **_STIFFNESS)
    damping: float = bounded(usual=10.0, **_DAMPING)
    period: float = bounded(1e-3, **PERIOD)

    @property
    def mobility(self) -> float:
        """T/C with C = M + T B + T^2 K; (35)."""
        coupling = self.period * (self.damping + self.period * self.stiffness)
        _require_coupling(coupling)
        return self.period / (self.mass + coupling)


@documented
@dataclass(frozen=True, eq=False)
class MasslessImpedance(Element, model="C", kind=kernels.MODEL_C, causality=Causality.IMPEDANCE):
    """Model C: a spring and damper whose end slides; velocity in, force out.

    See Kikuuwe et al. 2006, (38)-(40). Stiffness or damping must be greater than 0. The default values of a session for
    models A and C are taken from the experiments in section V of the paper.

    Attributes
    ----------
    law : Law
        Friction law of the surface.
    """

    law: Law
    stiffness: float = bounded(usual=6000.0, **_STIFFNESS)
    damping: float = bounded(usual=10.0, **_DAMPING)
    period: float = bounded(1e-3, **PERIOD)

    @property
    def mobility(self) -> float:
        """1/(B + T K)."""
        coupling = self.damping + self.period * self.stiffness
        _require_coupling(coupling)
        return 1.0 / coupling


@documented
@dataclass(frozen=True, eq=False)
class CompliantAdmittance(Element, model="D", kind=kernels.MODEL_D, causality=Causality.ADMITTANCE):
    """Model D: a mass on the end of model C; force in, velocity out.

    See Kikuuwe et al. 2006, (39)-(45). Stiffness or damping must be greater than 0.

    Attributes
    ----------
    law : Law
        Friction law of the surface.
    """

    law: Law
    mass: float = bounded(usual=2.0, above=0.0, **MASS)
    stiffness: float = bounded(usual=20000.0, **_STIFFNESS)
    damping: float = bounded(usual=400.0, **_DAMPING)
    period: float = bounded(1e-3, **PERIOD)

    @property
    def mobility(self) -> float:
        """A of (44): T/M + 1/(B + T K)."""
        coupling = self.damping + self.period * self.stiffness
        _require_coupling(coupling)
        return self.period / self.mass + 1.0 / coupling


# --- simulation -------------------------------------------------------------------------------------------------------

RESULT = np.dtype([*fields("<f8", "output friction_force displacement velocity", 2), ("sticking", "<i8")])
"""Result of one step of `run_element`; see `Simulation`."""


@dataclass(frozen=True)
class Simulation:
    """Time series of a simulated element; row k is the state after step k.

    Attributes
    ----------
    output : (n, 2) float array
        Admittance: velocity [m/s]; impedance: force [N].
    friction_force : (n, 2) float array
        Friction force on the contact [N].
    displacement : (n, 2) float array
        Elastic displacement of the virtual coupling [m].
    velocity : (n, 2) float array
        Sliding velocity of the contact [m/s].
    sticking : (n,) bool array
        True while the contact is at rest.
    """

    output: NDArray[np.float64]
    friction_force: NDArray[np.float64]
    displacement: NDArray[np.float64]
    velocity: NDArray[np.float64]
    sticking: NDArray[np.bool_]


@kernel
def run_element(records: Rows, inputs: NDArray[np.float64], results: Rows) -> None:
    """Step the element in the (1,) array `records` through `inputs` and write `results`.

    `inputs` is (n, 2), and `results` is (n,) of dtype `RESULT`.
    """
    s = records[0]
    for k in range(len(inputs)):
        kernels.step_element(s, inputs[k, 0], inputs[k, 1])
        r = results[k]
        for i in range(2):
            r.output[i] = s.output[i]
            r.friction_force[i] = s.friction_force[i]
            r.displacement[i] = s.displacement[i]
            r.velocity[i] = s.sliding_velocity[i]
        r.sticking = s.sticking


def simulate(element: Element, inputs: ArrayLike) -> Simulation:
    """Simulate `element` from its present state with `inputs`; the element is not modified.

    Parameters
    ----------
    element : Element
        Its state (see `Element.reset`) is the initial state.
    inputs : (n, 2) array
        One input per period: force [N] (admittance) or velocity [m/s] (impedance).

    Returns
    -------
    Simulation
        Bitwise identical to n calls of ``element.step``.

    Raises
    ------
    ConfigurationError
        If `inputs` has another shape or contains a value that is not finite.
    """
    return ElementRunner(element).simulate(inputs)


class ElementRunner:
    """Simulation of an element for inputs in consecutive chunks; the state is kept between chunks.

    Parameters
    ----------
    element : Element
        Provides the initial state. The element is not modified.
    """

    def __init__(self, element: Element) -> None:
        if not isinstance(element, Element):
            raise ConfigurationError(f"element = {element!r}: must be an element such as RigidAdmittance(law, mass).")
        self._record = element.copy_record()

    def simulate(self, inputs: ArrayLike) -> Simulation:
        """Simulate the next chunk of inputs; see `simulate`."""
        try:
            array = np.array(inputs, dtype=np.float64, ndmin=2)
        except (TypeError, ValueError):
            kind = type(inputs).__name__
            raise ConfigurationError(f"inputs of type {kind}: must be (n, 2) finite numbers.") from None
        array = array.reshape(0, 2) if array.size == 0 else array
        if array.ndim != 2 or array.shape[1] != 2 or not np.isfinite(array).all():
            raise ConfigurationError(f"inputs of shape {array.shape}: must be (n, 2) finite numbers.")
        results: NDArray[Any] = np.zeros(len(array), RESULT)
        run_element(self._record, array, results)
        columns = {name: np.ascontiguousarray(results[name]) for name in RESULT.names or ()}
        return Simulation(**{**columns, "sticking": columns["sticking"].astype(bool)})
