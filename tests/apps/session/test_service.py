"""The session service: messages of its front ends, the dead-man's key, and sessions without a clock."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from apps.front_ends import messages as msg
from apps.session.run import record_offline
from apps.session.service import CLICK, Mouse, Service
from apps.settings.config import complete
from devices.virtual.hands.registry import HAND_TARGET
from haptics.errors import ConfigurationError, DeviceFault
from haptics.recording.recording import Recording
from haptics.scenes import read_scene
from haptics.shared import Mailbox
from tests.apps.session.persons import Person

STARTED = {
    **{"trace": "t", "recording": "r", "device": "virtual-joystick", "model": "C", "causality": "impedance"},
    **{"rate_hz": 1e3, "hand": "mouse", "workspace": ((0, 0), (1, 1)), "mouse": True, "force_scale": 4.0},
}


class Running:
    """The session as the service uses it, with the parameters of a real one."""

    def __init__(self, dead_man="none"):
        self.started = {**STARTED, "dead_man": dead_man}
        self.config = complete({"session": {"model": "C"}})
        self.done: list[Any] = []
        self.version = 0
        self.hold_key = self.done.append
        self.handle_key = lambda name, down, at: self.done.append((name, down, at))
        self.fail = lambda fault: self.done.append(str(fault))
        self.stop = lambda: self.done.append("stop")

    def change(self, key, value):
        self.config, self.version = self.config.with_parameter(key, value), self.version + 1

    def configure(self, tables):
        self.config, self.version = self.config.with_tables(tables), self.version + 1


def served(session, *persons):
    """Return the service of a running session with these front ends, and its terminal output."""
    told: list[str] = []
    service = Service(told.append)
    for person in persons:
        service.fronts.add(person)
    service.begin(session)
    for person in persons:
        assert isinstance(person.told.pop(), msg.SessionStarted)
    return service, told


def test_parameter_change_reaches_all_front_ends_and_later_ones():
    session, asks, looks = Running(), Person(), Person()
    service, _ = served(session, asks, looks)
    asks.says = [msg.SetParameter("law.force", 2.5)]
    service.run_periodic_tasks()
    values = {"law.force": 2.5, "element.stiffness": 6000.0, "element.damping": 10.0}
    assert asks.told == [msg.ValuesInForce(values, yours=True)]
    assert looks.told == [msg.ValuesInForce(values)]
    late = Person()
    service.fronts.add(late)
    (greeting,) = late.told
    assert {parameter.key: parameter.value for parameter in greeting.parameters} == values


def test_scene_change_reaches_all_front_ends_once():
    session, asks, looks = Running(), Person(), Person()
    service, _ = served(session, asks, looks)
    session.configure({"scene": "border"})
    service.run_periodic_tasks()
    service.run_periodic_tasks()
    session.configure({"element": {"stiffness": 3000.0}})
    service.run_periodic_tasks()
    service.fronts.add(late := Person())
    assert late.told[0].scene.regions == read_scene("border").regions
    values = {"law.force": read_scene("border").law.force, "element.stiffness": 6000.0, "element.damping": 10.0}
    assert asks.told == looks.told == [msg.ValuesInForce(values), msg.SceneInForce(read_scene("border"), 1)]
    asks.says = [msg.SetParameter("law.force", 1.5)]
    service.run_periodic_tasks()
    scene = looks.told[-1].scene
    assert (scene.law.force, scene.regions) == (1.5, read_scene("border").regions)
    assert looks.told[-1].version == 3
    session.configure({"scene": ""})
    service.run_periodic_tasks()
    assert looks.told[-1] == msg.SceneInForce(None, 4)


def test_law_and_model_changed_by_a_program_reach_all_front_ends_and_remote_controls_once():
    session, window, control = Running(), Person(), Person()
    service, _ = served(session, window)
    service.controls.add(control)
    control.told.clear()
    session.configure({"law": {"name": "stribeck"}, "session": {"model": "B"}})
    for _ in range(2):
        service.run_periodic_tasks()
    session.configure({"law": {"name": "stribeck", "kinetic_force": 0.5}})
    service.run_periodic_tasks()
    (change,) = window.told
    assert control.told == [change]
    assert (change.model, change.law) == ("B", "stribeck")
    assert change.law_settings.keys() >= {"static_force", "kinetic_force", "stribeck_velocity"}
    assert {one.key.partition(".")[0] for one in change.parameters} == {"law", "element"}
    assert "law.force" not in {one.key for one in change.parameters}


def test_refusal_goes_to_the_front_end_that_asked():
    session, asks, looks = Running(), Person(), Person()
    service, _ = served(session, asks, looks)
    asks.says = [msg.SetParameter("law.force", -1.0)]
    service.run_periodic_tasks()
    (refused,) = asks.told
    assert isinstance(refused, msg.Refused)
    assert refused.values["law.force"] == session.config.law["force"]
    looks.says = [request := msg.Start("virtual-joystick", "B", "mouse")]
    service.run_periodic_tasks()
    assert (session.done, service.requested) == (["stop"], request)
    service.refuse_start("no such model")
    assert (asks.told, looks.told) == ([refused], [msg.Refused("no such model")])


@pytest.mark.parametrize("who", [0, 1])
def test_stop_in_any_front_end_stops_the_run_for_all(who):
    session, persons = Running(), (Person(), Person())
    service, _ = served(session, *persons)
    persons[who].says = [msg.Stop()]
    service.run_periodic_tasks()
    assert session.done == ["stop"]
    service.end(msg.SessionEnded("stopped"))
    assert [person.told for person in persons] == [[msg.SessionEnded("stopped")]] * 2
    persons[who].says = [msg.Stop(), msg.HoldKey(True), msg.Key("f", True), msg.SetParameter("law.force", 1.0)]
    service.run_periodic_tasks()
    assert session.done == ["stop"], "the run has ended"


def test_keys_keep_their_time_and_the_held_one_belongs_to_the_front_end_that_pressed_it_last():
    session, one, other = Running("key"), Person(msg.HoldKey(True, at=1.0)), Person(msg.HoldKey(True, at=2.0))
    service, _ = served(session, one, other)
    service.run_periodic_tasks()
    one.says = [msg.HoldKey(False)]
    service.run_periodic_tasks()
    assert session.done == [1.0, 2.0], "the other front end holds it"
    other.says = [msg.HoldKey(False), msg.Key("f", True, at=13.0)]
    service.run_periodic_tasks()
    assert session.done == [1.0, 2.0, None, ("f", True, 13.0)]


@pytest.mark.parametrize("goes", ["dies", "closes"])
def test_lost_front_end_releases_the_key_and_the_run_continues(goes):
    session, holds, looks = Running("key"), Person(msg.HoldKey(True, at=1.0)), Person()
    service, told = served(session, holds, looks)
    service.run_periodic_tasks()
    if goes == "dies":
        holds.dies = True
    else:
        holds.says = [msg.Close()]
    service.run_periodic_tasks()
    service.run_periodic_tasks()
    assert session.done == [1.0, None]
    assert told == (["a window ended unexpectedly; the run goes on with the others."] if goes == "dies" else [])


def test_run_fails_when_every_front_end_with_a_key_is_lost():
    session, monitor, persons = Running("key"), Person(holds_key=False), (Person(), Person())
    service, _ = served(session, monitor, *persons)
    persons[0].dies = True
    service.run_periodic_tasks()
    assert session.done == []
    persons[1].dies = True
    service.run_periodic_tasks()
    service.run_periodic_tasks()
    assert session.done == ["the live view ended unexpectedly, and with it the dead-man's key: the run was stopped."]


@pytest.mark.parametrize("dead_man", ["button", "none"])
def test_run_without_a_key_continues_alone(dead_man):
    session, person = Running(dead_man), Person()
    person.dies = True
    service, told = served(session, person)
    service.run_periodic_tasks()
    service.run_periodic_tasks()
    assert session.done == []
    assert told == ["the live view ended unexpectedly; the run goes on without it."]


@pytest.mark.parametrize("monitors", [(), (Person(holds_key=False),)], ids=["alone", "beside a monitor"])
def test_closing_the_last_window_with_a_key_stops_the_run_without_a_fault(monitors):
    session, persons = Running("key"), (Person(msg.Close()), Person())
    service, told = served(session, *monitors, *persons)
    service.run_periodic_tasks()
    assert session.done == []
    persons[1].says, persons[1].dies = [msg.Close()], True
    service.run_periodic_tasks()
    service.run_periodic_tasks()
    assert session.done == ["stop"]
    assert (service.fronts.open, told) == (monitors, [])


def test_mouse_buttons_of_two_front_ends_add_up_and_end_with_their_owner(monkeypatch):
    monkeypatch.setattr("apps.session.service.CLICK", -1.0)
    session, one, other = Running(), Person(), Person()
    service, _ = served(session, one, other)
    with Mouse() as service.mouse:
        lane = Mailbox(Path(service.mouse.path), HAND_TARGET)

        def shown():
            service.run_periodic_tasks()
            latest = lane.read()
            assert latest is not None
            position, engaged, buttons, ease = latest[1][0].tolist()
            assert ease == 0.0
            return list(position), engaged, buttons

        one.says, other.says = [msg.HandTarget(0.01, 0.02), msg.HandButtons(0b10)], [msg.HandButtons(0b1000)]
        assert shown() == ([0.01, 0.02], 1, 0b1010)
        other.says = [msg.HandButtons(0b110)]
        assert shown() == ([0.01, 0.02], 1, 0b110)
        other.dies = True
        assert shown() == ([0.01, 0.02], 1, 0b10)
        one.says = [msg.HandButtons(0)]
        assert shown() == ([0.01, 0.02], 1, 0)
        for grip in (0.3, 1.0):  # the pressure of a pen
            one.says = [msg.HandTarget(0.01, 0.02, grip)]
            service.run_periodic_tasks()
            assert lane.record["ease"][0] == 1.0 - grip


def test_short_click_lasts_until_the_servo_has_seen_it():
    service, _ = served(Running(), person := Person())
    with Mouse() as service.mouse:
        lane = Mailbox(Path(service.mouse.path), HAND_TARGET)
        person.says = [msg.HandButtons(0b10), msg.HandButtons(0), msg.HandButtons(0b100), msg.HandButtons(0)]
        service.run_periodic_tasks()
        began = time.monotonic()
        assert lane.record["buttons"][0] == 0b110
        while lane.record["buttons"][0]:
            service.run_periodic_tasks()
            assert time.monotonic() < began + 20.0
        assert time.monotonic() - began > 0.9 * CLICK
        version = lane.version
        service.run_periodic_tasks()
        assert lane.version == version


# --- sessions without a clock -----------------------------------------------------------------------------------------


def tables(folder, **session):
    usual = {"model": "C", "duration": 0.5, "clock": "off", "record": str(folder), "picture": False}
    return {"session": {**usual, **session}, "device": {"name": "virtual-joystick"}}


def test_offline_session_refuses_the_wall_clock_and_an_open_end(tmp_path):
    for duration in (0.5, None):
        with pytest.raises(ConfigurationError, match="must be 'off'"):
            record_offline(complete(tables(tmp_path, clock="wall", duration=duration)), tmp_path / "own")
    assert list(tmp_path.iterdir()) == []


def test_offline_fault_is_raised_after_it_was_recorded(tmp_path):
    with pytest.raises(DeviceFault):
        record_offline(complete(tables(tmp_path, faults=["read-error@0.2"])), tmp_path / "own")
    recording = Recording(tmp_path / "own")
    assert 150 < len(recording.rows) < 250
    assert recording.metadata["reason"] == "fault"
