"""The verification shares no code with what it verifies, and says of laws and flags what that says."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from apps.verify import facts
from apps.verify.contact.inclusion import inclusion
from apps.verify.contact.laws import law_of
from apps.verify.contact.text_law import NotUnderstood, levels
from haptics.elements.tables import make_law
from haptics.friction.law import Law
from haptics.records import Permission, Status
from haptics.servo.loop_kernels import GATE_TIME
from tests.apps.verify.runs import LAWS
from tests.processes import ROOT

MADE_BY = ("haptics.elements", "haptics.friction", "haptics.rendering", "haptics.servo", "numba")


def test_no_code_of_elements_laws_and_envelope_is_loaded() -> None:
    code = "import sys, apps.verify.check, apps.verify.command; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "apps.verify.check" in loaded
    assert [name for name in loaded if name.startswith(MADE_BY)] == []


def test_bits_and_times_are_those_of_the_program() -> None:
    assert {flag.name: int(flag) for flag in Status} == facts.FLAGS
    assert (facts.TOLD_RELEASED, facts.TOLD_ENDING) == (Permission.RELEASED, Permission.ENDING)
    assert facts.GATE_TIME == GATE_TIME


EXACT = [name for name in LAWS if name != "closed-form"]


@pytest.mark.parametrize("name", EXACT)
def test_the_force_of_a_law_is_that_of_the_program_and_no_other(name: str) -> None:
    theirs, ours = make_law(LAWS[name]), law_of(LAWS[name])
    random = np.random.default_rng(3)
    velocity = random.normal(size=(400, 2)) * np.geomspace(1e-6, 1.0, 400)[:, None]
    force = np.stack([theirs(one) for one in velocity])
    residual, bound = inclusion(ours, force, velocity, 0.0)
    assert (residual <= bound).all()
    for factor in (1.0 + 1e-8, 1.0 - 1e-8):
        residual, bound = inclusion(ours, factor * force, velocity, 0.0)
        assert (residual > bound).all()


@pytest.mark.parametrize("name", EXACT)
def test_the_forces_at_rest_are_those_of_the_program(name: str) -> None:
    theirs, ours = make_law(LAWS[name]), law_of(LAWS[name])
    assert theirs.breakaway_force == pytest.approx(ours.static, rel=1e-12)
    angles = np.linspace(0.0, 2.0 * np.pi, 13)
    directions = np.stack((np.cos(angles), np.sin(angles)), axis=1)
    edge = edges(theirs, directions)
    rest = np.zeros_like(edge)
    for factor, allowed in ((1.0 - 1e-9, True), (1.0 + 1e-8, False), (0.5, True)):
        residual, bound = inclusion(ours, factor * edge, rest, 0.0)
        assert ((residual <= bound) == allowed).all()


def edges(law: Law, directions: np.ndarray) -> np.ndarray:
    """Return the largest forces at rest, as the program's own solver finds where a contact begins to slide."""
    found = []
    for direction in directions:
        low, high = 0.0, 2.0 * law.breakaway_force
        for _ in range(60):
            middle = 0.5 * (low + high)
            if np.allclose(law.implicit(middle * direction * 1e-9, 1e-9), middle * direction, rtol=1e-11, atol=0.0):
                low = middle
            else:
                high = middle
        found.append(low * direction)
    return np.array(found)


@pytest.mark.parametrize(
    "source",
    [
        "def f(s): return __import__('os').getpid()",
        "def f(s): return s.real",
        "def f(s):\n    while s > 0:\n        s -= 1\n    return s",
        "def f(s, a='x'): return s",
        "def f(s): return lambda: s",
        "def f(s): return (1).bit_length()",
        "def f(s): return [s for _ in (1, 2)]",
        "def f(s): return math.gamma(s)",
        "def f(s): return unknown + s",
        "import os",
        "def f(s): return " + "1 + " * 3000 + "s",
        "def f(s): return " + "(" * 400 + "s" + ")" * 400,
    ],
)
def test_a_text_that_is_no_law_is_not_evaluated(source: str) -> None:
    with pytest.raises(NotUnderstood):
        levels(source, {}, np.array([0.1]))
