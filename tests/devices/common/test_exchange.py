"""The exchange of commands and samples that drivers share, without threads: watchdog, failures and the guardian."""

import errno
import time
from types import SimpleNamespace

import pytest

from devices.common.exchange import Exchange, ExchangeEnded
from haptics.errors import HapticError

WATCHDOG = 0.5


class PuckConnection(Exchange):
    """Device that answers every command with its double, or fails."""

    noun, remedy = "puck", "unplug the puck"
    sample_size, command_size = 1, 1

    def __init__(self, error=None):
        super().__init__(SimpleNamespace(keep_alive=1e-3, watchdog=WATCHDOG))
        self.wake, self.error, self.received, self.rests = self, error, [], 0

    def wait(self, timeout, *files):
        self._ending = True  # after the exchange that follows

    def exchange(self, now, command):
        self.received.append(command)
        if self.error is not None:
            raise self.error
        return now, 2.0 * command[0]

    def come_to_rest(self):
        self.rests += 1
        return True


@pytest.mark.parametrize(("age", "command"), [(0.0, 1.5), (2.0 * WATCHDOG, 0.0)])
def test_command_is_exchanged_for_a_sample_until_it_expires(age, command):
    puck = PuckConnection()
    puck.commands.publish(1.5, time.perf_counter() - age)
    puck._run()
    assert puck.received == [(command,)]
    assert puck.samples.read()[1] == 2.0 * command
    assert (puck.failure, puck.lost[0], puck.rests) == ("", 0.0, 0)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (HapticError("it sent nonsense"), "it sent nonsense; unplug the puck."),
        (OSError(errno.ENODEV, "gone"), "the puck is gone (No such device); unplug the puck."),
        (ZeroDivisionError("0"), "the exchange with the puck failed (ZeroDivisionError: 0); report this."),
        (ExchangeEnded("home it again."), "home it again."),
    ],
)
def test_error_ends_the_exchange_with_its_reason_and_the_safe_output(error, failure):
    puck = PuckConnection(error)
    puck._run()
    assert (puck.failure, puck.lost[0], puck.rests) == (failure, 1.0, 1)


def test_first_error_remains_the_reason():
    puck = PuckConnection(HapticError("it is not homed"))
    puck._run()
    puck.error, puck._ending = OSError(errno.EIO, "a consequence in another thread"), False
    puck._run()
    assert puck.failure == "it is not homed; unplug the puck."
    assert len(puck.received) == puck.rests == 2


@pytest.mark.parametrize("beats", [0, 1])
def test_guardian_that_took_over_is_the_reason(beats):
    puck, signs = PuckConnection(OSError(errno.EIO, "the guardian read the answer")), [True] * beats
    puck.guard = SimpleNamespace(beat=lambda: bool(signs and signs.pop()))
    puck._run()
    assert puck.failure.startswith("the guardian process has ended")
    assert len(puck.received) == beats
