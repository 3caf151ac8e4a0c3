"""Emulated drive: protocols, control law, watchdog, errors, and its behaviour on the bus."""

import contextlib
import errno
import math
import struct

import pytest
import usb.core
import usb.util
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.arm.body import ArmBody
from devices.common.settings import Workspace
from devices.emulators.arm import ArmPlant
from devices.emulators.odrive.axis import (
    CLOSED_LOOP,
    IDLE,
    POSITION_CONTROL,
    STEP,
    TORQUE_CONTROL,
    VELOCITY_CONTROL,
    Flywheels,
)
from devices.emulators.odrive.board import (
    JUMP,
    NATIVE,
    TEXT,
    TEXT_IN,
    TEXT_OUT,
    EmulatedOdrive,
    EmulatedOdriveBackend,
)
from devices.emulators.odrive.firmware import LONGEST_LOG, Firmware
from devices.emulators.odrive.text import TextProtocol
from devices.emulators.usb_bus import FreeTime
from devices.emulators.wire_faults import ODRIVE_FAULTS, WireFaults
from haptics.errors import ConfigurationError
from tests.devices.arm.odrive_rig import IDS, alone, let_go_by

ACKNOWLEDGE = 0x8000


@pytest.fixture
def inside():
    return alone()[0]


def packet(inside, endpoint, payload=b""):
    return struct.pack("<HHH", 0x81, endpoint, 8) + payload + struct.pack("<H", inside.checksum)


def ask(inside, name, payload=b""):
    answer = inside.handle(packet(inside, IDS[name] | ACKNOWLEDGE, payload))
    assert answer is None or answer[:2] == b"\x81\x80"
    return answer and answer[2:]


def drive_with_watchdog(axis, timeout):
    """Close the loop of an axis with a watchdog, fed once."""
    axis.values["config.watchdog_timeout"] = timeout
    axis.feed()
    axis.values["config.enable_watchdog"] = True
    axis.request(CLOSED_LOOP)


# --- native protocol -------------------------------------------------------------------------------------------------


def test_write_returns_the_previous_value(inside):
    assert ask(inside, "axis1.controller.input_vel", struct.pack("<f", 1.5)) == struct.pack("<f", 0.0)
    assert ask(inside, "axis1.controller.input_vel", struct.pack("<f", 2.5)) == struct.pack("<f", 1.5)
    assert ask(inside, "axis0.controller.input_vel") == struct.pack("<f", 0.0)


def test_packet_log_is_bounded(inside):
    for number in range(LONGEST_LOG + 3):
        inside.handle(packet(inside, IDS["axis0.controller.input_vel"], struct.pack("<f", number)))
    assert len(inside.received) == LONGEST_LOG
    assert struct.unpack_from("<f", inside.received[-1], 6) == (LONGEST_LOG + 2,)


def test_unknown_endpoint_returns_an_empty_answer(inside):
    assert inside.handle(packet(inside, 5000 | ACKNOWLEDGE)) == b"\x81\x80"


def test_read_only_property_ignores_writes(inside):
    assert ask(inside, "vbus_voltage", struct.pack("<f", 5.0)) == struct.pack("<f", 24.0)
    assert ask(inside, "vbus_voltage") == struct.pack("<f", 24.0)


@given(st.lists(st.tuples(st.sampled_from(sorted(IDS.values())), st.binary(max_size=12), st.booleans()), max_size=20))
def test_arbitrary_writes_do_not_crash_the_drive(packets):
    inside, plant = alone()
    for axis in inside.axes:
        axis.request(CLOSED_LOOP)
    settings_of = {number for path, number in IDS.items() if ".config." in path}
    for endpoint, payload, wants in packets:
        if endpoint not in settings_of:
            answer = inside.handle(packet(inside, endpoint | ACKNOWLEDGE * wants, payload))
            assert (answer is not None) == wants
        let_go_by(inside, 2 * STEP)
    assert all(math.isfinite(value) for value in (*plant.angles, *plant.speeds))


@given(st.binary(max_size=64))
def test_native_protocol_ignores_noise(data):
    inside, _ = alone()
    if struct.unpack("<H", data[-2:].rjust(2, b"\0"))[0] not in {1, inside.checksum}:
        assert inside.handle(data) is None
        assert not inside.received


def test_nan_command_is_a_motor_error():
    inside, plant = alone()
    inside.axes[0].request(CLOSED_LOOP)
    ask(inside, "axis0.controller.input_pos", struct.pack("<f", math.nan))
    let_go_by(inside, 0.01)
    assert inside.axes[0].values["motor.error"] == 1 << 16
    assert math.isfinite(plant.angles[0])


# --- control law -----------------------------------------------------------------------------------------------------


def test_integrator_compensates_a_load():
    inside, plant = alone()
    inside.axes[0].request(CLOSED_LOOP)
    plant.loads[:] = (0.1, 0.0)
    let_go_by(inside, 0.02)
    assert plant.angles[0] > 1e-3
    let_go_by(inside, 3.0)  # six of its time constants, speed gain / integrator gain
    assert plant.angles[0] == pytest.approx(0.0, abs=3e-4)
    assert inside.axes[0].values["controller.vel_integrator_torque"] == pytest.approx(-0.1, abs=0.01)


def test_speed_and_torque_control_modes():
    inside, plant = alone(friction=0.0)
    for axis, mode in zip(inside.axes, (VELOCITY_CONTROL, TORQUE_CONTROL), strict=True):
        axis.values["controller.config.control_mode"] = mode
        axis.request(CLOSED_LOOP)
    inside.axes[0].values["controller.input_vel"] = 1.5
    inside.axes[1].values["controller.input_torque"] = 1e-3
    let_go_by(inside, 0.5)
    assert plant.speeds[0] == pytest.approx(1.5, abs=0.02)
    assert plant.speeds[1] == pytest.approx(0.5 * 1e-3 / 2e-4 / 6.2832, rel=0.01)


@settings(max_examples=8)
@given(st.floats(-5.0, 5.0), st.floats(0.5, 5.0), st.sampled_from((0.05, math.inf)))
def test_commands_respect_current_torque_and_speed_limits(position, limit, torque_limit):
    inside, plant = alone()
    axis = inside.axes[0]
    axis.values.update({"motor.config.current_lim": limit, "motor.config.torque_lim": torque_limit})
    axis.request(CLOSED_LOOP)
    axis.values["controller.input_pos"] = position
    for _ in range(800):
        inside.iterate()
        assert abs(axis.torque) <= min(0.04 * limit, torque_limit) + 1e-12
        assert abs(plant.speeds[0]) < 2.4


def test_overspeed_disables_the_motor():
    inside, plant = alone(friction=0.0)
    axis = inside.axes[0]
    axis.request(CLOSED_LOOP)
    plant.loads[:] = (5.0, 0.0)
    let_go_by(inside, 0.05)
    assert (axis.values["error"], axis.values["controller.error"]) == (0x200, 0x1)
    assert (axis.values["current_state"], axis.torque) == (IDLE, 0.0)


@pytest.mark.parametrize(("turns", "speed"), [(0.123456, 0.0), (0.0, 0.7), (-3.0, -1.9)])
def test_encoder_estimates_position_and_speed(turns, speed):
    inside, plant = alone(friction=0.0)
    plant.speeds[:] = (speed, 0.0)
    let_go_by(inside, 0.2)
    inside.axes[0].set_count(round((turns + plant.angles[0]) * 8192) - round(plant.angles[0] * 8192))
    start = plant.angles[0]
    let_go_by(inside, 0.2)
    values = inside.axes[0].values
    assert values["encoder.pos_estimate"] - (plant.angles[0] - start) == pytest.approx(turns, abs=3 / 8192)
    assert values["encoder.vel_estimate"] == pytest.approx(speed, abs=0.05)


# --- watchdog and errors ---------------------------------------------------------------------------------------------


def test_watchdog_expires_after_its_timeout(inside):
    axis = inside.axes[0]
    drive_with_watchdog(axis, 0.1)
    let_go_by(inside, 0.1 - STEP)
    assert (axis.values["current_state"], axis.values.get("error", 0)) == (CLOSED_LOOP, 0)
    axis.feed()
    let_go_by(inside, 0.1 - STEP)
    assert axis.values["current_state"] == CLOSED_LOOP
    let_go_by(inside, 3 * STEP)
    assert (axis.values["current_state"], axis.values["error"]) == (IDLE, 0x800)


def test_watchdog_that_was_never_fed_expires_immediately(inside):
    axis = inside.axes[0]
    axis.values["config.enable_watchdog"] = True
    inside.iterate()
    assert axis.values["error"] == 0x800


def test_error_prevents_closed_loop_until_cleared(inside):
    axis = inside.axes[0]
    axis.fail(0x40, "motor", 0x8)
    axis.request(CLOSED_LOOP)
    let_go_by(inside, 0.01)
    assert axis.values["current_state"] == IDLE
    ask(inside, "clear_errors")
    axis.request(CLOSED_LOOP)
    let_go_by(inside, 0.01)
    assert axis.values["current_state"] == CLOSED_LOOP


# --- on the bus ------------------------------------------------------------------------------------------------------


def test_faults_start_and_end_at_their_times():
    board = EmulatedOdrive(time=FreeTime(), faults=["unplug@1+1", "motor-fault@3", "encoder-jump@4"])
    generation, address = board.generation, board.address
    for instant, plugged in ((0.5, True), (1.5, False), (2.5, True)):
        board.time.wait_until(instant)
        board.catch_up()
        assert board.plugged == plugged
    assert board.generation == generation + 1
    assert board.address != address
    board.time.wait_until(3.5)
    board.catch_up()
    assert board.inside.axes[0].values["motor.error"] == 0x8
    board.time.wait_until(4.5)
    board.catch_up()
    let_go_by(board.inside, 0.05)
    assert board.inside.axes[0].values["encoder.pos_estimate"] == pytest.approx(JUMP, abs=1e-3)


@pytest.mark.parametrize("text", ["nonsense@1", "nak", "nak@", "nak@-1", "nak@1+0", "nak@x", "nak@nan"])
def test_invalid_fault_descriptions_are_rejected(text):
    with pytest.raises(ConfigurationError, match="fault of the wire"):
        WireFaults(ODRIVE_FAULTS, [text])


def test_faults_can_be_set_and_cleared():
    faults = WireFaults(ODRIVE_FAULTS)
    faults.set("nak", "delay-5ms", "delay-1ms")
    assert faults.delay(0.0) == 5e-3
    faults.clear("nak")
    assert faults.at(0.0) == {"delay-5ms", "delay-1ms"}
    faults.clear()
    assert not faults.at(0.0)
    with pytest.raises(ConfigurationError, match=r"nacked.*nak"):
        faults.set("nacked")


# --- iterations in kernels --------------------------------------------------------------------------------------------


ROOM = Workspace((-0.2, -0.15), (0.2, 0.15))


def flywheels():
    plant = Flywheels()
    plant.speeds[:] = (0.3, -0.2)
    return plant


def arm():
    plant = ArmPlant(ArmBody(), (100.0, -80.0), ROOM, {"name": "minimum-jerk", "pause": 0.0})
    plant.begin()
    return plant


def story(plant, pieces):
    """Return the state after each of six pieces of 100 iterations, in calls of `pieces` iterations."""
    inside, told = Firmware(plant, 1), []
    for axis in inside.axes:
        axis.values.update({"config.watchdog_timeout": 0.05, "controller.config.vel_limit": 50.0})
        axis.request(CLOSED_LOOP)
        axis.values["controller.input_pos"] += 0.05
        axis.values["config.enable_watchdog"] = True
    for _ in range(6):  # the watchdogs expire in the middle
        for count in pieces:
            inside.iterate(count)
        told += [*plant.angles, *plant.speeds, *(value for axis in inside.axes for value in axis.values.values())]
    assert 0x800 in told
    return told


@pytest.mark.parametrize("make", [flywheels, arm])
def test_iterations_per_call_do_not_change_the_result(make):
    one_by_one = story(make(), [1] * 100)
    assert story(make(), [100]) == one_by_one
    assert story(make(), [3, 13, 1, 64, 19]) == one_by_one


@pytest.mark.parametrize(("timeout", "left"), [(math.inf, True), (math.nan, False), (-1.0, False), (1e30, True)])
def test_invalid_watchdog_timeouts_are_handled(inside, timeout, left):
    axis = inside.axes[0]
    drive_with_watchdog(axis, timeout)
    inside.iterate(100)
    assert (axis.values["error"] == 0) == left


def test_values_too_large_for_the_wire_are_wrapped_or_infinite():
    inside, plant = alone()
    plant.angles[:] = (1e6, 0.0)
    inside.iterate(8)
    (count,) = struct.unpack("<i", ask(inside, "axis0.encoder.shadow_count"))
    assert count == (round(1e6 * 8192) + 2**31) % 2**32 - 2**31
    inside.axes[0].values["controller.input_vel"] = 1e300
    assert ask(inside, "axis0.controller.input_vel") == struct.pack("<f", math.inf)


# Timeout of a transfer that may not be answered [ms].
SOON = 50


# --- text protocol ----------------------------------------------------------------------------------------------------


def say(protocol, *packets):
    return [answer for packet in packets for answer in protocol.handle_packet(packet)]


@pytest.fixture
def board():
    return EmulatedOdrive()


def text_port(board):
    """Return the drive as a USB device whose serial port is claimed in place of the kernel's driver."""
    device = usb.core.find(backend=EmulatedOdriveBackend(board))
    device.detach_kernel_driver(TEXT)
    usb.util.claim_interface(device, TEXT)
    return device


@pytest.fixture
def port(board):
    device = text_port(board)
    yield device
    usb.util.dispose_resources(device)


def read(device):
    return bytes(device.read(TEXT_IN, 64, SOON))


def require_no_answer(device):
    with pytest.raises(usb.core.USBError) as caught:
        read(device)
    assert caught.value.errno == errno.ETIMEDOUT


# --- lines -----------------------------------------------------------------------------------------------------------


def test_position_line_sets_the_inputs_and_feeds_the_watchdog(inside):
    axis = inside.axes[1]
    axis.values["controller.config.control_mode"] = TORQUE_CONTROL
    drive_with_watchdog(axis, 0.1)
    protocol = TextProtocol(inside)
    for _ in range(5):
        let_go_by(inside, 0.08)
        assert say(protocol, b"p 1 0.001 -0.25 1.5e-2\n") == []
    assert axis.values["current_state"] == CLOSED_LOOP
    assert axis.values["controller.config.control_mode"] == POSITION_CONTROL
    given = [axis.values[f"controller.input_{name}"] for name in ("pos", "vel", "torque")]
    assert given == list(struct.unpack("<3f", struct.pack("<3f", 0.001, -0.25, 0.015)))
    say(protocol, b"p 1 0.002\n")
    assert axis.values["controller.input_vel"] == -0.25  # omitted values stay
    assert inside.axes[0].values.get("controller.input_pos", 0.0) == 0.0
    let_go_by(inside, 0.11)
    assert axis.values["current_state"] == IDLE


def test_feedback_line_returns_the_encoder_estimates():
    inside, plant = alone(friction=0.0)
    plant.angles[:], plant.speeds[:] = (0.3, -0.75), (0.5, 0.0)
    let_go_by(inside, 0.1)
    inside.axes[1].set_count(-6144)
    let_go_by(inside, 0.1)
    first, second = (answer.split() for answer in say(TextProtocol(inside), b"f 0\nf 1\n"))
    for words, axis in zip((first, second), inside.axes, strict=True):
        found = [axis.values["encoder.pos_estimate"], axis.values["encoder.vel_estimate"]]
        assert [float(word) for word in words] == pytest.approx(found, abs=1e-6)
        assert [len(word.partition(b".")[2]) for word in words] == [6, 6]
    assert float(second[0]) == pytest.approx(-0.75, abs=1e-3)


def test_text_properties_are_read_and_written_by_name(inside):
    protocol = TextProtocol(inside)
    written = b"w axis0.controller.config.pos_gain 12.5\nw axis1.requested_state 8\nw axis0.config.enable_watchdog 0\n"
    assert say(protocol, written) == []
    assert inside.axes[0].values["controller.config.pos_gain"] == 12.5
    assert inside.axes[1].values["current_state"] == CLOSED_LOOP
    for name, text in {
        "axis0.controller.config.pos_gain": b"12.500000",
        "axis1.current_state": b"8",
        "axis1.requested_state": b"0",
        "axis0.encoder.is_ready": b"1",
        "vbus_voltage": b"24.000000",
        "fw_version_minor": b"5",
        "axis0.encoder.config.cpr": b"8192",
    }.items():
        assert say(protocol, b"r " + name.encode() + b"\n") == [text + b"\r\n"]
    inside.axes[0].fail(0x40, "motor", 1 << 35)
    assert say(protocol, b"r axis0.motor.error\n") == [b"343597383\r\n"]  # at most nine characters


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b"p 0", b"invalid command format"),
        (b"f x", b"invalid command format"),
        (b"p 2 0.1", b"invalid motor 2"),
        (b"f -1", b"invalid motor 4294967295"),
        (b"r", b"invalid command format"),
        (b"r axis0.no_such_thing", b"invalid property"),
        (b"w axis2.error 1", b"invalid property"),
        (b"r axis0.watchdog_feed", b"invalid property"),
        (b"w axis0.current_state 8", b"not implemented"),
        (b"w axis0.requested_state idle", b"not implemented"),
        (b"x 1 2", b"unknown command"),
        (b"", b"unknown command"),
    ],
)
def test_invalid_line_is_reported_and_ignored(inside, line, answer):
    before = [dict(axis.values) for axis in inside.axes]
    assert say(TextProtocol(inside), line + b"\n") == [answer + b"\r\n"]
    assert [axis.values for axis in inside.axes] == before


def test_text_checksums_and_comments(inside):
    protocol = TextProtocol(inside)
    assert say(protocol, b"r vbus_voltage *93\n") == [b"24.000000*40\r\n"]
    assert say(protocol, b"r vbus_voltage *94\nr vbus_voltage *\n") == []
    assert say(protocol, b"r vbus_voltage ; how much is it?\n") == [b"24.000000\r\n"]


# --- lines and packets -----------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 40), max_size=12))
def test_text_lines_may_be_split_across_packets(lengths):
    inside, _ = alone()
    text = b"p 0 0.5 0.25\nr vbus_voltage\rp 1 -1\nf 0!r fw_version_minor\n"
    packets = []
    for length in lengths:
        packets.append(text[:length])
        text = text[length:]
    said = say(TextProtocol(inside), *packets, text)
    assert said == [b"24.000000\r\n", b"0.000000 0.000000\r\n", b"5\r\n"]
    assert [axis.values["controller.input_pos"] for axis in inside.axes] == [0.5, -1.0]


def test_too_long_text_line_is_dropped(inside):
    protocol = TextProtocol(inside)
    assert say(protocol, b"r " + b"x" * 252, b"\n") == [b"invalid property\r\n"]
    long = b"r vbus_voltage " + b"x" * 300
    packets = [long[start : start + 64] for start in range(0, len(long), 64)]
    assert say(protocol, *packets, b"r vbus_voltage", b"\nr fw_version_minor\n") == [b"5\r\n"]


@given(st.lists(st.binary(max_size=64), max_size=8))
def test_text_protocol_survives_noise(packets):
    inside, _ = alone()
    protocol = TextProtocol(inside)
    assert all(answer.endswith(b"\r\n") for answer in say(protocol, *packets))
    let_go_by(inside, 1e-3)
    say(protocol, b"\n" * 2)
    assert say(protocol, b"r fw_version_minor\n") == [b"5\r\n"]


# --- on the bus ------------------------------------------------------------------------------------------------------


def test_text_interface_is_initially_bound_to_the_kernel_driver(board):
    device = usb.core.find(backend=EmulatedOdriveBackend(board))
    assert [device.is_kernel_driver_active(number) for number in (0, TEXT, NATIVE)] == [True, True, False]
    with pytest.raises(usb.core.USBError) as caught:
        usb.util.claim_interface(device, TEXT)
    assert caught.value.errno == errno.EBUSY
    device.detach_kernel_driver(TEXT)
    assert not device.is_kernel_driver_active(0)  # both interfaces are released
    usb.util.claim_interface(device, TEXT)
    assert set(board.owners) == {TEXT}
    usb.util.dispose_resources(device)
    board.unplug()
    board.plug()
    assert board.drivers == {0, TEXT}


def test_several_lines_in_a_transfer_get_two_packets(port):
    lines = b"p 0 0.0001 0.002 0.03\np 1 0.0001 0.002 0.03\nf 0\nf 1\nr fw_version_minor\n"
    assert len(lines) > 64
    assert port.write(TEXT_OUT, lines, SOON) == len(lines)
    assert read(port) == b"0.000000 0.000000\r\n"  # the first reply is sent at once
    assert read(port) == b"0.000000 0.000000\r\n5\r\n"
    require_no_answer(port)


def test_full_output_buffer_blocks_until_a_power_cycle(board, port):
    port.write(TEXT_OUT, b"r vbus_voltage\n" * 8, SOON)
    assert read(port) == b"24.000000\r\n"
    for _ in range(2):
        require_no_answer(port)
        port.write(TEXT_OUT, b"r fw_version_minor\n", SOON)
        with contextlib.suppress(usb.core.USBError):
            port.reset()
    port.write(TEXT_OUT, b"r vbus_voltage\n" * 100, SOON)  # the lines are lost, not stored
    board.unplug()
    board.plug()
    device = text_port(board)
    device.write(TEXT_OUT, b"r fw_version_minor\n", SOON)
    assert read(device) == b"5\r\n"
    usb.util.dispose_resources(device)


def test_transfer_without_a_claim_fails(board):
    backend = EmulatedOdriveBackend(board)
    handle = backend.open_device(next(backend.enumerate_devices()))
    backend.claim_interface(handle, NATIVE)
    for driven, number in ((True, errno.EBUSY), (False, errno.EINVAL)):
        if not driven:
            backend.detach_kernel_driver(handle, TEXT)
        with pytest.raises(usb.core.USBError) as caught:
            backend.bulk_write(handle, TEXT_OUT, TEXT, b"f 0\n", SOON)
        assert caught.value.errno == number


def test_delay_fault_delays_text_transfers():
    board = EmulatedOdrive(time=FreeTime())
    device = text_port(board)
    board.faults.set("delay-5ms")
    before = board.now
    device.write(TEXT_OUT, b"f 0\n", SOON)
    assert board.now - before == pytest.approx(5e-3)
    read(device)
    assert board.now - before == pytest.approx(10e-3)
