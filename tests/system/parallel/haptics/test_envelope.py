"""Random operation of the envelope until each of its rules has acted."""

from haptics import Status
from haptics.rendering.envelope import ENVELOPE_FLAGS
from tests.haptics.rendering.test_envelope_machine import run_machine


def test_every_rule_of_the_envelope_acts_and_no_limit_is_broken():
    """The machine has no motions (`ASTRAY`) and no warm motors, and rarely reaches `FOLLOWING_ERROR`."""
    rules = ENVELOPE_FLAGS & ~(Status.ASTRAY | Status.FOLLOWING_ERROR | Status.THERMAL)
    assert run_machine(120) & rules == rules
