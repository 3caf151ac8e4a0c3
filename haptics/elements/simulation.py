"""Compiled simulation of an element without device and clock, for figures, fits, sweeps and tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.elements.kernels import step_element
from haptics.elements.models import Element
from haptics.errors import ConfigurationError
from haptics.jit import kernel
from haptics.records import Rows

RESULT = np.dtype(
    [
        ("output", "<f8", (2,)),
        ("friction_force", "<f8", (2,)),
        ("displacement", "<f8", (2,)),
        ("velocity", "<f8", (2,)),
        ("sticking", "<i8"),
    ]
)
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
        step_element(s, inputs[k, 0], inputs[k, 1])
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
        columns = {name: np.ascontiguousarray(results[name]) for name in ("output", "friction_force", "displacement")}
        return Simulation(
            **columns, velocity=np.ascontiguousarray(results["velocity"]), sticking=results["sticking"].astype(bool)
        )
