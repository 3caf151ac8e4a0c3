"""Subjects of the suite: the elements of the project, published renderers, and renderers of the user."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from apps.conformance.cells import DAMPING, FRICTION, MASS, STIFFNESS, Cell
from apps.conformance.motions import Motion
from apps.conformance.peers import PEERS
from apps.conformance.plant import Renderer, run_compiled, run_python
from haptics.device import Causality
from haptics.elements.models import Element
from haptics.elements.tables import MODELS, element_fields, make_element
from haptics.errors import ConfigurationError, HapticError
from haptics.records import Rows
from haptics.settings import unknown_name

MakeRenderer = Callable[[float], Renderer]
"""``make_renderer(period) -> renderer``: returns a new renderer at rest for a tick period of `period` [s]."""

_OWN = {"B": {"mass": 0.1}}
"""Model-specific parameters. Model B renders a light mass, as in the sessions."""


class Subject(Protocol):
    """Renderer that can be judged."""

    @property
    def name(self) -> str:
        """Name in the results."""

    @property
    def causality(self) -> Causality:
        """Causality, which selects the plant."""

    def run(self, cell: Cell, motion: Motion) -> Rows | None:
        """Run `motion` in `cell` with a new instance.

        Return None if a value was not finite.
        """


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

    def make(self, period: float) -> Element:
        """Create the element for a tick period of `period` [s]."""
        known = {"mass": MASS, "stiffness": STIFFNESS, "damping": DAMPING, **_OWN.get(self.model, {})}
        fields = {field.name for field in element_fields(MODELS[self.model][self.causality])}
        table = {name: value for name, value in known.items() if name in fields}
        return make_element(self.model, {"name": "coulomb", "force": FRICTION}, table, period, self.causality)

    def run(self, cell: Cell, motion: Motion) -> Rows | None:
        """Run `motion` in `cell` in one compiled call."""
        return run_compiled(self.make(1.0 / cell.rate), cell, motion)


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
        """Run `motion` in `cell`, tick by tick.

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


def elements() -> dict[str, list[Subject]]:
    """Return the elements by model name; a model with two causalities has two subjects."""
    table: dict[str, list[Subject]] = {}
    for model, forms in MODELS.items():
        for causality in forms:
            name = model if len(forms) == 1 else f"{model}-{causality}"
            table.setdefault(model, []).append(ElementSubject(name, model, causality))
    return table


def peers() -> dict[str, list[Subject]]:
    """Return the re-implemented renderers by name."""
    return {name: [RendererSubject(name, make)] for name, make in PEERS.items()}


def choose(names: Iterable[str], with_peers: bool = False) -> list[Subject]:
    """Return the subjects called `names`, or all elements if empty, and all peers if `with_peers`.

    Raises
    ------
    ConfigurationError
        If a name is unknown.
    """
    own, others = elements(), peers()
    wanted = [*(list(names) or own), *(others if with_peers else ())]
    table = {**own, **others}
    for subjects in own.values():
        table.update({subject.name: [subject] for subject in subjects})
    for name in wanted:
        if name not in table:
            raise unknown_name("element", name, table)
    chosen = {subject.name: subject for name in wanted for subject in table[name]}
    return list(chosen.values())


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
