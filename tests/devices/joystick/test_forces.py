"""What is to be sent of a force, by a clock that a test turns."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from devices.joystick.families import GENERIC
from devices.joystick.forces import Forces
from devices.joystick.playbook import Playbook
from tests.devices.joystick.doubles import described

KEEP_ALIVE = 0.04


class Stick:
    """The forces of a stick whose reports are all taken."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("devices.joystick.forces.time", SimpleNamespace(perf_counter=lambda: self.now))
        self.forces = Forces(Playbook(described("openffboard"), GENERIC), [1, 2], KEEP_ALIVE)

    def command(self, level_x: float, level_y: float) -> None:
        self.forces.levels.publish(level_x, level_y, self.now)

    def sent(self) -> list[str]:
        """Return what is sent now."""
        reports, found = self.forces.reports(), []
        report = next(reports, None)
        while report is not None:
            found.append(report.hex())
            try:
                report = reports.send(True)
            except StopIteration:
                break
        return found


@pytest.fixture
def stick(monkeypatch: pytest.MonkeyPatch) -> Stick:
    return Stick(monkeypatch)


def magnitudes(sent: list[str]) -> list[str]:
    return [text for text in sent if text.startswith("05")]


@pytest.mark.parametrize(("old", "goes"), [(0.0, False), (0.039, False), (0.041, True), (0.1, True)])
def test_a_command_that_nobody_repeats_is_replaced_by_none(stick: Stick, old: float, goes: bool) -> None:
    stick.command(0.5, -0.25)
    assert magnitudes(stick.sent()) == ["05010040", "050200e0"]
    stick.now += old
    assert magnitudes(stick.sent()) == (["05010000", "05020000"] if goes else [])
    assert stick.forces.on != goes


@pytest.mark.parametrize(("old", "wakes_within"), [(0.0, 0.04), (0.03, 0.04), (0.041, 0.02)])
def test_the_writer_sleeps_no_longer_than_until_a_command_is_too_old(
    stick: Stick, old: float, wakes_within: float
) -> None:
    """Whenever the tick dies, zero is sent before a second time has gone by."""
    stick.command(0.5, 0.0)
    stick.sent()
    stick.now += old
    assert stick.forces.idle() <= wakes_within + 1e-9


def test_an_effect_is_started_anew_while_commands_come_and_not_after(stick: Stick) -> None:
    starts = []
    for tick in range(400):
        stick.now += 1e-3
        if tick < 200:
            stick.command(0.5, 0.5)
        starts += [(tick, text[2:4]) for text in stick.sent() if text.startswith("0a")]
    for block in ("01", "02"):
        ticks = [tick for tick, text in starts if text == block]
        assert max(b - a for a, b in itertools.pairwise(ticks)) <= 41
        assert max(ticks) < 240
