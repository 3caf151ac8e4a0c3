"""The messages of the service: what its documentation shows is understood, what a stranger may send is refused."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.inverse3.choosing import choose, require_free, require_kind
from devices.inverse3.messages import (
    MessageError,
    find_reading,
    force_template,
    parse_inventory,
    set_up_message,
)
from haptics.errors import DeviceNotFoundError, DeviceOpenError
from tests.devices.inverse3.documented import COMMANDS, answer, changed, inventory, message
from tests.devices.inverse3.services import emulated, transparent

# --- out --------------------------------------------------------------------------------------------------------------


def test_a_force_is_told_as_documented():
    text = force_template("049D") % (0.0, -0.25, 1.5)
    assert json.loads(text) == {
        "inverse3": [
            {"device_id": "049D", "commands": {"set_cursor_force": {"vector": {"x": 0.0, "y": -0.25, "z": 1.5}}}}
        ]
    }


@given(st.text(), st.tuples(*[st.floats(-10.0, 10.0)] * 3))
def test_a_force_is_told_to_whomever_to_a_millionth_of_a_newton(device_id, force):
    (device,) = json.loads(force_template(device_id) % force)["inverse3"]
    assert device["device_id"] == device_id
    told = device["commands"]["set_cursor_force"]["vector"]
    assert [told[axis] for axis in "xyz"] == pytest.approx(force, abs=6e-7)


def test_the_first_message_says_who_we_are_and_where_the_origin_shall_be():
    first = json.loads(set_up_message("049D", "arm_front_centered"))
    assert set(first["session"]["configure"]) == {"profile"} and first["session"]["configure"]["profile"]["name"]
    (device,) = first["inverse3"]
    assert device["configure"] == {"preset": {"preset": "arm_front_centered"}}
    assert device["commands"] == {"set_cursor_force": {"vector": {"x": 0.0, "y": 0.0, "z": 0.0}}}


# --- in ---------------------------------------------------------------------------------------------------------------


def test_the_inventory_of_the_documentation_is_understood():
    (device,) = parse_inventory(inventory())
    assert device.device_id == "049D"
    assert device.names == ("049D", "0000A049D", "e1f0-42")
    assert (device.kind, device.scale, device.gate, device.damping) == ("inverse3", (1.0, 1.0, 1.0), 0.3, 0.0)
    assert device.status == {"calibrated": True, "in_use": False, "power_supply": True, "ready": True, "started": True}


def test_a_state_of_the_documentation_is_understood():
    reading = find_reading(answer(), "049D")
    assert reading.position == (0.01, -0.12, 0.15)
    assert reading.force == (0.5, -0.25, 1.0)
    assert reading.trouble == ""


def test_parts_of_a_transform_that_change_nothing_are_left_out_and_a_stretched_one_is_trouble():
    for same in ({}, {"position": {"x": 0.1, "y": 0.0, "z": 0.0}}, {"scale": {"x": 1.0, "y": 1.0, "z": 1.0}}):
        assert find_reading(answer(("state.transform", same)), "049D").trouble == ""
    assert find_reading(answer(("state.transform", None)), "049D").trouble == ""
    stretched = {"scale": {"x": 2.0, "y": 2.0, "z": 2.0}}
    assert "stretched" in find_reading(answer(("state.transform", stretched)), "049D").trouble
    assert "stretched" in find_reading(answer(("state.transform", {"scale": 3})), "049D").trouble
    (device,) = parse_inventory(
        inventory(("state.transform", stretched), ("config.mount.scale", {"x": 0.5, "y": 1, "z": 1}))
    )
    assert device.scale == (1.0, 2.0, 2.0)
    with pytest.raises(DeviceOpenError, match="stretches the space"):
        require_kind(device, "inverse3")


@pytest.mark.parametrize(
    ("word", "words"),
    [("power_supply", "has no power"), ("calibrated", "not calibrated"), ("started", "not been started"),
     ("ready", "not ready")],
)  # fmt: skip
def test_every_word_of_the_status_becomes_words_for_people(word, words):
    assert words in find_reading(answer((f"status.{word}", False)), "049D").trouble
    for unsaid in (None, "false", 0):
        assert find_reading(answer((f"status.{word}", unsaid)), "049D").trouble == ""


def test_while_we_use_it_in_use_is_no_trouble_but_before_it_is():
    assert find_reading(answer(("status.in_use", True)), "049D").trouble == ""
    (device,) = parse_inventory(inventory(("status.in_use", True)))
    with pytest.raises(DeviceOpenError, match="in use by another program"):
        require_free(device)
    (device,) = parse_inventory(inventory())
    require_free(device)


@pytest.mark.parametrize("bad", [None, {}, {"x": 0.0, "y": 0.0}, {"x": 0.0, "y": "0", "z": 0.0}, 3, [0, 0, 0],
                                 {"x": True, "y": 0, "z": 0}, {"x": 1e9, "y": 0, "z": 0},
                                 {"x": 10**400, "y": 0, "z": 0}])  # fmt: skip
def test_a_cursor_that_is_nowhere_is_no_zero(bad):
    with pytest.raises(MessageError, match="does not say where the cursor of 049D is"):
        find_reading(answer(("state.cursor_position", bad)), "049D")
    assert math.isnan(sum(find_reading(answer(("state.current_cursor_force", bad)), "049D").force))


def test_a_device_that_is_no_longer_there_is_missed():
    for text in (message(), answer(device_id="049E"), "{}"):
        with pytest.raises(MessageError, match="device 049D is no longer there"):
            find_reading(text, "049D")


HOSTILE = ["", "{", "nonsense", "[]", "3", '"049D"', "null", '{"inverse3": {}}', '{"inverse3": [3]}', "[" * 100_000,
           '{"inverse3": [{"device_id": 3}]}', '{"inverse3": [{}]}', '{"inverse3": NaN}', '{"inverse3": [Infinity]}',
           '{"a":' * 100_000, '{"inverse3": ' + "9" * 5000 + "}"]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_message_is_refused(text):
    with pytest.raises(MessageError, match="the service sent"):
        find_reading(text, "049D")
    with pytest.raises(MessageError, match="the service sent"):
        parse_inventory(text)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
PATHS = ["config", "state", "status", "config.filters", "config.mount", "config.device_info", "config.mount.scale",
         "state.cursor_position", "state.transform", "state.current_cursor_force", "config.type"]  # fmt: skip


@given(st.sampled_from(PATHS), ANYTHING.filter(lambda value: value is not None))
def test_whatever_stands_somewhere_is_read_or_refused(path, value):
    for read in (parse_inventory, lambda text: find_reading(text, "049D")):
        try:
            read(inventory((path, value)))
        except MessageError as error:
            assert "cursor" in str(error)


# --- which device -----------------------------------------------------------------------------------------------------


def both():
    first = json.loads(inventory())["inverse3"][0]
    second = changed(first, ("device_id", "04A0"), ("config.extended_device_id", "0000B04A0"),
                     ("config.device_info.uuid", "e1f0-43"), ("config.type", "minverse"))  # fmt: skip
    return parse_inventory(message(first, second))


@pytest.mark.parametrize(("name", "device_id"), [("049D", "049D"), ("04A0", "04A0"), ("0000B04A0", "04A0"),
                                                 ("e1f0-42", "049D"), ("e1f0-43", "04A0")])  # fmt: skip
def test_of_two_the_one_that_is_named_is_taken(name, device_id):
    assert choose(both(), name).device_id == device_id


def test_of_two_one_must_be_named():
    with pytest.raises(DeviceOpenError, match=r"choose one with device\.device_id: 049D, 04A0"):
        choose(both(), "")
    with pytest.raises(DeviceNotFoundError, match=r"no device\.device_id = '1234'; the service knows 049D, 04A0"):
        choose(both(), "1234")
    with pytest.raises(DeviceNotFoundError, match=r"knows of no Inverse3.*device\.emulated=true"):
        choose([], "")
    assert choose(both()[:1], "").device_id == "049D"


def test_two_with_one_number_cannot_be_told_apart_by_a_force():
    first = json.loads(inventory())["inverse3"][0]
    twins = parse_inventory(message(first, changed(first, ("config.device_info.uuid", "e1f0-99"))))
    with pytest.raises(DeviceOpenError, match="two devices have the number 049D"):
        choose(twins, "e1f0-99")


def test_a_minverse_is_not_taken_for_an_inverse3():
    _, small = both()
    with pytest.raises(DeviceOpenError, match=r"04A0 is a minverse.*set device\.kind=minverse"):
        require_kind(small, "inverse3")
    require_kind(small, "minverse")


# --- the emulated service says and obeys what is documented -----------------------------------------------------------


def fields(table, prefix=""):
    for name, value in table.items():
        yield f"{prefix}{name}"
        if isinstance(value, dict):
            yield from fields(value, f"{prefix}{name}.")


def test_the_emulated_service_speaks_in_documented_fields_only():
    from devices.emulators.inverse3.service import Service

    service = Service([emulated()])
    for text, known in ((service.connect(), inventory()), (service.receive("{}", 0.0), answer())):
        mine, theirs = (json.loads(one)["inverse3"][0] for one in (text, known))
        assert set(fields(mine)) <= set(fields(theirs))
        find_reading(text, "049D")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_documented_command_is_taken_and_holds_for_one_message(name):
    from devices.emulators.inverse3.service import Service

    device = emulated(filters=transparent())
    service = Service([device])
    service.connect()
    command = {"inverse3": [{"device_id": "049D", "commands": {name: COMMANDS[name]}}]}
    first = json.loads(service.receive(json.dumps(command), 0.001))["inverse3"][0]["state"]
    modes = {"set_cursor_force": "force", "set_cursor_position": "position", "set_angular_torques": "torque"}
    assert first["control_mode"] == modes.get(name, "idle")
    assert first["transform"] == COMMANDS[name].get("transform", {})
    assert (device.given != (0.0, 0.0, 0.0)) == (name in {"set_cursor_force", "set_cursor_position"})
    if name == "set_cursor_force":
        assert device.given == (0.0, 0.0, 1.5)
        assert first["current_cursor_force"] == {"x": 0.0, "y": 0.0, "z": 1.5}
    after = json.loads(service.receive("{}", 0.002))["inverse3"][0]["state"]
    assert after["control_mode"] == "idle"
    assert after["transform"] == first["transform"], "a transform stays"
    assert device.given == (0.0, 0.0, 0.0)


def test_configuration_stays_and_a_force_is_forgotten_when_no_more_come():
    from devices.emulators.inverse3.service import IDLE_AFTER, Service

    device = emulated(filters=transparent())
    service = Service([device])
    service.connect()
    configure = {"preset": {"preset": "arm_front_centered"}, "force_gate": {"gain": 0.1}, "damping": {"scalar": 0.5}}
    force = {"set_cursor_force": {"vector": {"x": 1.0, "y": 0.0, "z": 0.0}}}
    message = {"inverse3": [{"device_id": "049D", "configure": configure, "commands": force}]}
    service.receive(json.dumps(message), 0.001)
    device.advance(0.9 * IDLE_AFTER)
    assert device.given[:2] == (1.0, 0.0)
    device.advance(1.1 * IDLE_AFTER)
    assert device.given == (0.0, 0.0, 0.0)
    assert (device.preset, device.filters.gate, device.filters.damping) == ("arm_front_centered", 0.1, 0.5)


def test_the_gate_lets_a_steady_force_through_and_less_of_one_that_turns_round():
    from devices.emulators.inverse3.filters import Filters

    still, steady, shaken = (0.0, 0.0, 0.0), Filters(fixed=0.0), Filters(fixed=0.0)
    for _ in range(5):
        left = steady.passed((3.0, 0.0, 0.0), still)
    assert left == (3.0, 0.0, 0.0)
    tops = [abs(shaken.passed((3.0 * (-1.0) ** k, 0.0, 0.0), still)[0]) for k in range(50)]
    assert max(tops[20:]) < 2.0
    assert Filters(fixed=0.5).passed((3.0, 0.0, 0.0), (0.2, 0.0, 0.0))[0] == pytest.approx(2.9)
