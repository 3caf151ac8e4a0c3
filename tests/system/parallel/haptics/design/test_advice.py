"""Long computations for the topic of tests/haptics/design/test_advice.py."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from haptics.design import Handle, Severity, advise, suggest
from tests.haptics.design.test_advice import model_c
from tests.haptics.doubles import make_spec
from tests.haptics.strategies import log_floats


@settings(max_examples=5)
@given(
    mass=log_floats(0.03, 3.0),
    own=log_floats(0.05, 5.0),
    delay=st.floats(0.0, 9e-3),
    resolution=log_floats(1e-6, 3e-4),
    force=log_floats(0.3, 9.0),
)
def test_what_is_suggested_deserves_no_warning(
    mass: float, own: float, delay: float, resolution: float, force: float
) -> None:
    spec = make_spec(mass=mass, damping=own, delay=delay, position_resolution=resolution)
    found = suggest(Handle(mass, own, delay, resolution), force)
    advice = advise(model_c(0.999 * found.stiffness, found.damping, force), spec)
    assert [one.text for one in advice if one.severity is Severity.WARNING] == []
    assert {one.bound for one in advice} <= {"settling", "presliding"}, "notes on what the device does not allow"
    soft = [one for one in advice if one.bound == "presliding"]
    assert bool(soft) is (force / (0.999 * found.stiffness) > 1e-3)
