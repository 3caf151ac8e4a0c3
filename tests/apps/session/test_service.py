"""What front ends ask of a session: who is answered, who hears of it, who holds the key, and who may leave."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from apps.front_ends.messages import (
    Close,
    HandButtons,
    HandTarget,
    HoldKey,
    Key,
    Refused,
    SceneInForce,
    SessionEnded,
    SessionStarted,
    SetParameter,
    Start,
    Stop,
    ValuesInForce,
)
from apps.session.mouse import CLICK, Mouse
from apps.session.service import Service
from apps.settings.config import complete
from devices.virtual.hands.registry import HAND_TARGET
from haptics.errors import DeviceFault
from haptics.scenes import read_scene
from haptics.servo.lane import Lane
from tests.apps.session.persons import Person

STARTED = {
    **{"trace": "t", "recording": "r", "device": "virtual-joystick", "model": "C", "causality": "impedance"},
    **{"rate_hz": 1e3, "hand": "mouse", "workspace": ((0, 0), (1, 1)), "mouse": True, "force_scale": 4.0},
}


class Running:
    """What a service sees of a session; its parameters are those of a real one."""

    def __init__(self, dead_man: str = "none") -> None:
        self.started = {**STARTED, "dead_man": dead_man}
        self.config = complete({"session": {"model": "C"}})
        self.done: list[Any] = []
        self.version = 0

    def change(self, key: str, value: float) -> None:
        self.config, self.version = self.config.with_parameter(key, value), self.version + 1

    def configure(self, tables: dict[str, Any]) -> None:
        self.config, self.version = self.config.with_tables(tables), self.version + 1

    def hold_key(self, at: float | None) -> None:
        self.done.append(at)

    def take_key(self, name: str, down: bool, at: float) -> None:
        self.done.append((name, down, at))

    def fail(self, fault: DeviceFault) -> None:
        self.done.append(str(fault))

    def stop(self) -> None:
        self.done.append("stop")


def served(session: Running, *persons: Person) -> tuple[Service, list[str]]:
    """Return a service of a running session with these front ends, and what it tells the terminal."""
    told: list[str] = []
    service = Service(told.append)
    for person in persons:
        service.fronts.add(person)
    service.begin(session)  # type: ignore[arg-type]
    for person in persons:
        assert isinstance(person.told.pop(), SessionStarted)
    return service, told


def test_a_change_is_answered_and_shown_to_the_others_and_to_who_joins_later() -> None:
    session, asks, looks = Running(), Person(), Person()
    service, _ = served(session, asks, looks)
    asks.says = [SetParameter("law.force", 2.5)]
    service.attend()
    values = {"law.force": 2.5, "element.stiffness": 6000.0, "element.damping": 10.0}
    assert asks.told == [ValuesInForce(values, yours=True)]
    assert looks.told == [ValuesInForce(values)]
    late = Person()
    service.fronts.add(late)
    (greeting,) = late.told
    assert {parameter.key: parameter.value for parameter in greeting.parameters} == values


def test_all_are_told_of_another_scene_whoever_changed_it_and_only_then() -> None:
    session, asks, looks = Running(), Person(), Person()
    service, _ = served(session, asks, looks)
    session.configure({"scene": "border"})
    service.attend()
    service.attend()
    session.configure({"element": {"stiffness": 3000.0}})
    service.attend()
    values = {"law.force": read_scene("border").law.force, "element.stiffness": 6000.0, "element.damping": 10.0}
    assert asks.told == looks.told == [ValuesInForce(values), SceneInForce(read_scene("border"), 1)]
    asks.says = [SetParameter("law.force", 1.5)]
    service.attend()
    scene = looks.told[-1].scene
    assert (scene.law.force, scene.regions) == (1.5, read_scene("border").regions)
    assert looks.told[-1].version == 3
    session.configure({"scene": ""})
    service.attend()
    assert looks.told[-1] == SceneInForce(None, 4)


def test_a_refusal_goes_to_the_one_that_asked() -> None:
    session, asks, looks = Running(), Person(), Person()
    service, _ = served(session, asks, looks)
    asks.says = [SetParameter("law.force", -1.0)]
    service.attend()
    (refused,) = asks.told
    assert isinstance(refused, Refused)
    assert refused.values["law.force"] == session.config.law["force"]
    looks.says = [Start("virtual-joystick", "A", "mouse")]
    service.attend()
    service.refuse_start("they do not go together")
    assert (asks.told, looks.told) == ([refused], [Refused("they do not go together")])


def test_start_ends_the_run_and_the_wish_is_kept_with_who_has_it() -> None:
    session, one, other = Running(), Person(), Person()
    service, _ = served(session, one, other)
    wish = Start("virtual-joystick", "B", "mouse")
    one.says.append(wish)
    service.attend()
    assert session.done == ["stop"]
    assert service.wish == wish
    service.refuse_start("no such model")
    assert (one.told, other.told) == ([Refused("no such model")], [])


@pytest.mark.parametrize("who", [0, 1])
def test_stop_in_any_stops_the_run_and_all_hear_the_end(who: int) -> None:
    session, persons = Running(), (Person(), Person())
    service, _ = served(session, *persons)
    persons[who].says = [Stop()]
    service.attend()
    assert session.done == ["stop"]
    service.end(SessionEnded("stopped"))
    assert [person.told for person in persons] == [[SessionEnded("stopped")]] * 2
    persons[who].says = [Stop(), HoldKey(True), Key("f", True), SetParameter("law.force", 1.0)]
    service.attend()
    assert session.done == ["stop"], "there is no run any more"


def test_keys_are_passed_on_with_the_time_of_the_front_end() -> None:
    session = Running("key")
    service, _ = served(session, Person(HoldKey(True, at=12.5), HoldKey(False), Key("f", True, at=13.0)))
    service.attend()
    assert session.done == [12.5, None, ("f", True, 13.0)]


def test_the_key_is_held_by_who_said_so_last() -> None:
    session, one, other = Running("key"), Person(HoldKey(True, at=1.0)), Person(HoldKey(True, at=2.0))
    service, _ = served(session, one, other)
    service.attend()
    one.says = [HoldKey(False)]
    service.attend()
    assert session.done == [1.0, 2.0], "it was held by the other"
    other.says = [HoldKey(False)]
    service.attend()
    assert session.done == [1.0, 2.0, None]


@pytest.mark.parametrize("goes", ["dies", "closes"])
def test_a_front_end_that_goes_with_the_key_lets_it_go_and_the_run_goes_on(goes: str) -> None:
    session, holds, looks = Running("key"), Person(HoldKey(True, at=1.0)), Person()
    service, told = served(session, holds, looks)
    service.attend()
    if goes == "dies":
        holds.dies = True
    else:
        holds.says = [Close()]
    service.attend()
    service.attend()
    assert session.done == [1.0, None]
    assert told == (["a window ended unexpectedly; the run goes on with the others."] if goes == "dies" else [])


def test_the_run_fails_when_all_are_dead_whose_key_could_be_held_and_only_then() -> None:
    session, monitor, persons = Running("key"), Person(holds_key=False), (Person(), Person())
    service, _ = served(session, monitor, *persons)
    persons[0].dies = True
    service.attend()
    assert session.done == []
    persons[1].dies = True
    service.attend()
    service.attend()
    assert session.done == ["the live view ended unexpectedly, and with it the dead-man's key: the run was stopped."]


@pytest.mark.parametrize("dead_man", ["button", "none"])
def test_without_a_key_the_run_goes_on_alone(dead_man: str) -> None:
    session, person = Running(dead_man), Person()
    person.dies = True
    service, told = served(session, person)
    service.attend()
    service.attend()
    assert session.done == []
    assert told == ["the live view ended unexpectedly; the run goes on without it."]


def test_a_window_that_is_closed_by_hand_is_no_fault_and_the_last_one_stops_the_run() -> None:
    session, persons = Running("key"), (Person(Close()), Person())
    service, told = served(session, *persons)
    service.attend()
    assert session.done == []
    persons[1].says, persons[1].dies = [Close()], True
    service.attend()
    service.attend()
    assert session.done == ["stop"]
    assert (service.fronts.open, told) == ((), [])


def test_a_run_is_stopped_in_order_when_the_window_with_its_key_is_closed_beside_a_monitor() -> None:
    session, monitor, stage = Running("key"), Person(holds_key=False), Person(Close())
    service, _ = served(session, monitor, stage)
    service.attend()
    assert session.done == ["stop"]
    assert service.fronts.open == (monitor,)


def test_buttons_of_two_mice_add_up_and_go_with_who_held_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.session.mouse.CLICK", -1.0)
    session, one, other = Running(), Person(), Person()
    service, _ = served(session, one, other)
    with Mouse() as service.mouse:
        lane = Lane(Path(service.mouse.path), HAND_TARGET)

        def shown() -> tuple[Any, ...]:
            service.attend()
            latest = lane.read()
            assert latest is not None
            position, engaged, buttons, ease = latest[1][0].tolist()
            assert ease == 0.0
            return list(position), engaged, buttons

        one.says, other.says = [HandTarget(0.01, 0.02), HandButtons(0b10)], [HandButtons(0b1000)]
        assert shown() == ([0.01, 0.02], 1, 0b1010)
        other.says = [HandButtons(0b110)]
        assert shown() == ([0.01, 0.02], 1, 0b110)
        other.dies = True
        assert shown() == ([0.01, 0.02], 1, 0b10)
        one.says = [HandButtons(0)]
        assert shown() == ([0.01, 0.02], 1, 0)


def test_front_ends_are_told_of_the_scene() -> None:
    session, late = Running(), Person()
    session.config = complete({"session": {"model": "C"}, "scene": "ice-wood-rubber"})
    service, _ = served(session, Person())
    service.fronts.add(late)
    (greeting,) = late.told
    assert [region.name for region in greeting.scene.regions] == ["ice", "rubber"]


def test_a_pen_that_is_pressed_less_grips_less() -> None:
    service, _ = served(Running(), person := Person())
    with Mouse() as service.mouse:
        lane = Lane(Path(service.mouse.path), HAND_TARGET)
        for grip in (0.3, 1.0):
            person.says = [HandTarget(0.01, 0.02, grip)]
            service.attend()
            assert lane.record["ease"][0] == 1.0 - grip


def test_a_click_in_one_breath_lasts_until_ticks_have_seen_it() -> None:
    service, _ = served(Running(), person := Person())
    with Mouse() as service.mouse:
        lane = Lane(Path(service.mouse.path), HAND_TARGET)
        person.says = [HandButtons(0b10), HandButtons(0), HandButtons(0b100), HandButtons(0)]
        service.attend()
        began = time.monotonic()
        assert lane.record["buttons"][0] == 0b110
        while lane.record["buttons"][0]:
            service.attend()
            assert time.monotonic() < began + 20.0
        assert time.monotonic() - began > 0.9 * CLICK
        version = lane.version
        service.attend()
        assert lane.version == version
