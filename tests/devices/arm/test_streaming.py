"""What the thread between tick and drive takes for a jump of an encoder; time and answers are the test's."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from devices.arm.motors.checks import CLOSED_LOOP
from devices.arm.motors.rounds import Answer, Rounds
from devices.arm.motors.streaming import Streaming
from haptics.errors import DeviceFault

FASTEST = 40.0
"""No motor turns faster [turn/s]."""

TELLING = 0.08
"""So far does one come in a millisecond that was told to turn with 30 turns a second, and none that was not [turn]."""


def answer(position: float) -> Answer:
    return Answer(0.0, (position, 0.0, 0.0, 0.0), "axis0.current_state", CLOSED_LOOP)


@pytest.mark.parametrize("told", [(0.0,), (30.0,), (30.0, 0.0)])
def test_how_far_a_motor_may_have_come_is_a_matter_of_what_it_was_told(
    monkeypatch: pytest.MonkeyPatch, told: tuple[float, ...]
) -> None:
    now = [0.0]
    monkeypatch.setattr("devices.arm.motors.streaming.time", SimpleNamespace(perf_counter=lambda: now[0]))
    streaming = Streaming(cast(Rounds, SimpleNamespace()), FASTEST)
    streaming._publish(answer(0.0))
    for speed in told:
        streaming.commands.publish(0.0, 0.0, speed, 0.0, 0.0, 0.0, now[0])
        streaming._look()
    now[0] = 1e-3
    if max(told) > 0.0:
        streaming._take(answer(TELLING))
        assert streaming.samples.read()[1] == TELLING
        return
    with pytest.raises(DeviceFault, match=r"the encoder of axis 0 jumped by \+0\.08 turns"):
        streaming._take(answer(TELLING))


def test_a_command_that_stays_the_same_is_new_if_it_was_given_anew() -> None:
    """Where motors are told at once what is new, and the rest when it is time (`devices.arm.motors.can.rounds`)."""
    streaming: Any = Streaming(cast(Rounds, SimpleNamespace()), FASTEST)
    streaming.commands.publish(*6 * (0.5,), 1.0)
    streaming._look()
    first = streaming._command
    streaming._look()
    assert streaming._command is first
    streaming.commands.publish(*6 * (0.5,), 2.0)
    streaming._look()
    assert streaming._command == first
    assert streaming._command is not first
