"""Long computations beside tests/haptics/rendering/test_envelope_machine.py."""

from haptics.records import Status
from haptics.rendering.envelope import ENVELOPE_FLAGS
from tests.haptics.rendering.test_envelope_machine import run_machine


def test_every_rule_of_the_envelope_acts_and_no_limit_is_broken() -> None:
    """`Status.ASTRAY` is set for motions only, which the machine does not make."""
    rules = ENVELOPE_FLAGS & ~Status.ASTRAY
    assert run_machine(120) & rules == rules
