"""Subjects of the suite: the elements of the project, published renderers, and renderers of the user.

Published renderers are re-implemented from the formulas of their authors, with the force and stiffness of the suite,
and show the behaviour of a formula on its plant. They are not the products, which run on other hardware, in other loops
and with other settings.
"""

from __future__ import annotations

import importlib.util
import math
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.conformance.cells import DAMPING, FRICTION, MASS, STIFFNESS, Cell, Motion
from apps.conformance.plant import Renderer, run_compiled, run_python
from haptics.device import Causality
from haptics.elements.tables import MODELS, element_fields, make_element
from haptics.errors import ConfigurationError, HapticError
from haptics.records import Rows
from haptics.settings import unknown_name

MakeRenderer = Callable[[float], Renderer]
"""``make_renderer(period) -> renderer``: returns a new renderer at rest for a tick period of `period` [s]."""

_OWN = {"B": {"mass": 0.1}}
"""Model-specific parameters. Model B renders a light mass, as in the sessions."""


@dataclass(frozen=True)
class ElementSubject:
    """Element of the project.

    Attributes
    ----------
    name : str
        Name in the results.
    model : str
        Model name in settings.
    causality : Causality
        Causality, for models that have both forms.
    """

    name: str
    model: str
    causality: Causality

    def run(self, cell: Cell, motion: Motion) -> Rows | None:
        """Run `motion` in `cell` with a new element in one compiled call; return None if a value was not finite."""
        known = {"mass": MASS, "stiffness": STIFFNESS, "damping": DAMPING, **_OWN.get(self.model, {})}
        fields = {field.name for field in element_fields(MODELS[self.model][self.causality])}
        table = {name: value for name, value in known.items() if name in fields}
        law = {"name": "coulomb", "force": FRICTION}
        element = make_element(self.model, law, table, 1.0 / cell.rate, self.causality)
        return run_compiled(element, cell, motion)


@dataclass(frozen=True)
class RendererSubject:
    """Renderer written in Python.

    Attributes
    ----------
    name : str
        Name in the results.
    make : callable
        ``make(period)`` returns ``renderer(position, velocity) -> force``.
    """

    name: str
    make: MakeRenderer
    causality: Causality = Causality.IMPEDANCE

    def run(self, cell: Cell, motion: Motion) -> Rows | None:
        """Run `motion` in `cell`, tick by tick; return None if a value was not finite.

        Raises
        ------
        ConfigurationError
            If the renderer raises an exception. The message contains its location.
        """
        try:
            return run_python(self.make(1.0 / cell.rate), cell, motion)
        except HapticError:
            raise
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            raise ConfigurationError(
                f"renderer {self.name} failed: {type(error).__name__}: {error} ({where.filename}, line {where.lineno})."
            ) from error


Subject = ElementSubject | RendererSubject
"""Renderer that can be judged."""


def choose(names: Iterable[str], with_peers: bool = False) -> list[Subject]:
    """Return the subjects called `names`, or all elements if empty, and all peers if `with_peers`.

    A model with two causalities has two subjects.

    Raises
    ------
    ConfigurationError
        If a name is unknown.
    """
    table: dict[str, list[Subject]] = {
        model: [
            ElementSubject(model if len(forms) == 1 else f"{model}-{causality}", model, causality)
            for causality in forms
        ]
        for model, forms in MODELS.items()
    }
    wanted = [*(list(names) or table), *(PEERS if with_peers else ())]
    forms_by_name = {subject.name: [subject] for subjects in table.values() for subject in subjects}
    table |= {name: [RendererSubject(name, make)] for name, make in PEERS.items()}
    table |= forms_by_name
    for name in wanted:
        if name not in table:
            raise unknown_name("element", name, table)
    return list({subject.name: subject for name in wanted for subject in table[name]}.values())


def load_renderer(place: str) -> RendererSubject:
    """Load the renderer at `place`, ``FILE.py:FUNCTION``.

    Raises
    ------
    ConfigurationError
        If the file or function does not exist, or the file fails to load.
    """
    file, colon, function = place.rpartition(":")
    path = Path(file)
    if not colon or not path.is_file():
        raise ConfigurationError(f"--renderer {place}: must be FILE.py:FUNCTION, and the file must exist.")
    spec = importlib.util.spec_from_file_location(f"renderer_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"--renderer {place}: {path} is not a Python file.")
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module here
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigurationError(f"--renderer {place}: {type(error).__name__}: {error}.") from error
    make = getattr(module, function, None)
    if not callable(make):
        raise ConfigurationError(f"--renderer {place}: there is no function {function!r} in {path}.")
    return RendererSubject(f"{path.stem}:{function}", make)


Pair = tuple[float, float]
Formula = Callable[[Any, Any], Pair]
"""``formula(position, velocity) -> force`` on the handle; all are pairs."""

REGULARISATION = 0.01
"""Half width of the ramp of the regularised sign around zero speed [m/s]."""

RAMP_SPEED = 0.25
"""Speed at the end of OpenFFBoard's ramp [m/s]: a quarter of a full-scale speed of 1 m/s."""

RAMP_FILTER_FREQUENCY, RAMP_FILTER_QUALITY = 50.0, 0.2
"""Frequency [Hz] and quality factor of OpenFFBoard's low-pass filter for friction."""


def sign(period: float, width: float = 0.0) -> Formula:
    """Return Coulomb's law as a sign function: -F v/|v|, zero at rest; with a linear ramp up to `width` [m/s]."""

    def formula(_: Any, velocity: Any) -> Pair:
        speed = max(math.hypot(velocity[0], velocity[1]), width)
        gain = -FRICTION / speed if speed > 0.0 else 0.0
        return gain * velocity[0], gain * velocity[1]

    return formula


def chai3d_stick_slip(period: float) -> Formula:
    """Return the effect ``cEffectStickSlip`` of CHAI3D 3.3: a spring to an anchor that jumps to the tool.

    When the spring would exceed the maximum force, the anchor jumps to the tool and the force of that tick is zero.
    """
    return _anchored(lambda x, y: (0.0, 0.0) if STIFFNESS * math.hypot(x, y) > FRICTION else (x, y))


def proxy(period: float) -> Formula:
    """Return proxy friction (Ruspini et al. 1997; CHAI3D, HAPI): an undamped spring to a dragged point.

    Static and kinetic friction are equal. The formula is model C with zero damping.
    """

    def limit(x: float, y: float) -> Pair:
        reach, longest = math.hypot(x, y), FRICTION / STIFFNESS
        return (x * longest / reach, y * longest / reach) if reach > longest else (x, y)

    return _anchored(limit)


def _anchored(limit: Callable[[float, float], Pair]) -> Formula:
    """Return a spring to an anchor, which follows the tool if ``limit(x, y)`` reduces the stretch of the spring [m]."""
    anchor: list[float] = []

    def formula(position: Any, _: Any) -> Pair:
        if not anchor:
            anchor.extend(position)
        stretch = anchor[0] - position[0], anchor[1] - position[1]
        x, y = limited = limit(*stretch)
        if limited != stretch:
            anchor[:] = position[0] + x, position[1] + y
        return STIFFNESS * x, STIFFNESS * y

    return formula


def openffboard_ramp(period: float) -> Formula:
    """Return the friction effect of OpenFFBoard.

    It is half a sine wave up to `RAMP_SPEED`, per axis, with a second-order low-pass filter (bilinear transform).
    """
    k = math.tan(math.pi * RAMP_FILTER_FREQUENCY * period)
    norm = 1.0 + k / RAMP_FILTER_QUALITY + k * k
    gain, b1, b2 = k * k / norm, 2.0 * (k * k - 1.0) / norm, (1.0 - k / RAMP_FILTER_QUALITY + k * k) / norm
    memory = [[0.0, 0.0], [0.0, 0.0]]

    def formula(_: Any, velocity: Any) -> Pair:
        forces = []
        for own, v in zip(memory, velocity, strict=True):
            rise = 0.5 * (1.0 - math.cos(math.pi * min(abs(v) / RAMP_SPEED, 1.0)))
            x = -math.copysign(FRICTION * rise, v)
            y = gain * x + own[0]
            own[0], own[1] = 2.0 * gain * x - b1 * y + own[1], gain * x - b2 * y
            forces.append(y)
        return forces[0], forces[1]

    return formula


PEERS: dict[str, Callable[[float], Formula]] = {
    "peer-sign": sign,
    "peer-regularised-sign": lambda period: sign(period, REGULARISATION),
    "peer-chai3d-stick-slip": chai3d_stick_slip,
    "peer-proxy": proxy,
    "peer-openffboard-ramp": openffboard_ramp,
}
"""Re-implemented renderers by their names in the results."""
