"""The pantograph: messages of the board, ports, mechanisms and settings."""

import math
import os
import re
import stat
import struct
from contextlib import ExitStack, nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import devices
from devices.common import bus
from devices.common.kernels import estimate_velocity
from devices.common.settings import VelocitySettings
from devices.common.velocity import fill_velocity, prepare_velocity
from devices.emulated import pantograph as emulated
from devices.emulators.hapi import PROFILES, TORQUE_LIMIT, Arms, Firmware
from devices.pantograph import board as boards
from devices.pantograph import device as drivers
from devices.pantograph import guardian
from devices.pantograph.board import Board, WireError, move_message, parse_reply, setup_message
from devices.pantograph.kernels import PANTOGRAPH, drive_motors, fill_mechanism, place_handle
from devices.pantograph.mechanisms import CLEARANCE, MAX_TORQUE, MECHANISMS
from haptics.errors import ConfigurationError, DeviceNotFoundError, DeviceOpenError
from haptics.jit import kernel

NO_HAND = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
# Built once; the operator holds them at home until time advances.
ARMS = {name: Arms(profile, NO_HAND, mass=0.1, damping=0.5) for name, profile in PROFILES.items()}

torques = st.tuples(st.floats(-MAX_TORQUE, MAX_TORQUE), st.floats(-MAX_TORQUE, MAX_TORQUE))


def board(mechanism="gen-1"):
    ARMS[mechanism].go_home()
    return Firmware(ARMS[mechanism])


def setup_of(mechanism):
    return setup_message(mechanism.ports, mechanism.direction, mechanism.home, mechanism.counts)


SETUP = setup_of(MECHANISMS["gen-1"])
ZERO = move_message((1, 2), (0.0, 0.0))


def test_setup_message_matches_the_published_example():
    expected = bytes.fromhex("0105 03 0000 03 0000 00 00") + struct.pack("<4f", 180.0, 13824.0, 0.0, 13824.0)
    assert SETUP == expected
    assert len(SETUP) == 26


def test_move_message_matches_the_published_example_but_for_the_lowest_bytes():
    message = move_message((1, 2), (0.01, -0.02))
    published = bytes.fromhex("0205 0ad7233c 0ad7a3bc")
    assert message[:2] == published[:2]
    assert (message[3:6], message[7:]) == (published[3:6], published[7:])
    assert message[2] == message[6] == 0


@given(pair=torques)
def test_torque_rounding_is_small_and_towards_zero(pair):
    sent = struct.unpack("<2f", move_message((1, 2), pair)[2:])
    for asked, got in zip(pair, sent, strict=True):
        assert got == pytest.approx(asked, rel=3.1e-5, abs=1e-38)
        assert abs(got) <= abs(struct.unpack("<f", struct.pack("<f", asked))[0])


def test_swapped_ports_swap_torques_and_angles():
    assert move_message((2, 1), (0.01, -0.02)) == move_message((1, 2), (-0.02, 0.01))
    reply = struct.pack("<Bff", boards.DEVICE_ID, -61.0, 241.0)
    assert parse_reply((2, 1), reply) == (241.0, -61.0)
    assert parse_reply((1, 2), reply) == (-61.0, 241.0)


@given(data=st.binary(max_size=12))
def test_reply_is_parsed_or_rejected(data):
    try:
        angles = parse_reply((1, 2), data)
    except WireError as error:
        assert "the board sent" in str(error)
    else:
        assert data == struct.pack("<Bff", boards.DEVICE_ID, *angles)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_reply_with_nan_is_rejected(bad):
    with pytest.raises(WireError, match="no numbers"):
        parse_reply((1, 2), struct.pack("<Bff", boards.DEVICE_ID, 1.0, bad))


@pytest.mark.parametrize("name", MECHANISMS)
def test_driver_and_emulator_agree_on_mechanisms(name):
    mechanism, firmware = MECHANISMS[name], board(name)
    assert firmware.receive(setup_of(mechanism), 0.0) == b""
    reply = firmware.receive(move_message(mechanism.ports, (0.03, -0.05)), 0.0)
    assert parse_reply(mechanism.ports, reply) == pytest.approx(mechanism.home, abs=1e-4)
    assert firmware.torques == pytest.approx((0.03, -0.05), abs=TORQUE_LIMIT / 4095)


# --- the emulated board behaves as the facts say ---------------------------------------------------------------------


def test_board_limits_its_torques_and_keeps_them_after_silence_and_reset():
    firmware = board()
    firmware.receive(SETUP + move_message((1, 2), (7.0, -0.1)), 0.0)
    firmware.receive(guardian.RESET, 0.2)
    firmware.receive(b"", 5.0)
    assert firmware.torques == pytest.approx((TORQUE_LIMIT, -0.1), abs=1e-4)
    assert firmware.device is None


def test_board_waits_a_second_for_a_short_message():
    firmware = board()
    firmware.receive(SETUP, 0.0)
    assert firmware.receive(move_message((1, 2), (0.1, 0.1))[:-1], 0.0) == b""
    assert firmware.receive(b"", 0.9) == b""
    assert len(firmware.receive(b"", 1.1)) == guardian.REPLY_LENGTH


def test_board_does_not_resynchronise_after_a_lost_byte():
    firmware = board()
    firmware.receive(SETUP, 0.0)
    message = move_message((1, 2), (0.1, 0.1))
    replies = [firmware.receive(message[:4] + message[5:], 0.0)]
    replies += [firmware.receive(message, 1e-3 * k) for k in range(1, 20)]
    assert replies.count(b"") > 1


class Wire:
    """A port for the functions of the guardian, connected to firmware in memory."""

    def __init__(self, firmware, monkeypatch):
        self.firmware, self.time, self.pending, self.lateness = firmware, 0.0, b"", 1.0
        monkeypatch.setattr(guardian, "write_all", self.write)
        monkeypatch.setattr(guardian, "read_up_to", self.read)
        monkeypatch.setattr(guardian.termios, "tcflush", self.flush)
        monkeypatch.setattr(guardian, "time", SimpleNamespace(sleep=self.sleep))

    def write(self, port, data):
        self.pending += self.firmware.receive(data, self.time)

    def read(self, port, length, patience):
        data, self.pending = self.pending[:length], self.pending[length:]
        return data

    def flush(self, port, queue):
        self.pending = b""

    def sleep(self, duration):
        self.time += self.lateness * duration


@pytest.fixture
def memory_wire(monkeypatch):
    return lambda firmware: Wire(firmware, monkeypatch)


@pytest.mark.parametrize("lost", range(10))
def test_board_comes_to_rest_after_any_lost_byte(lost, memory_wire):
    firmware = board()
    firmware.receive(SETUP + move_message((1, 2), (0.1, -0.1)), 0.0)
    message = move_message((1, 2), (0.11, -0.09))
    memory_wire(firmware).write(0, message[:lost] + message[lost + 1 :])
    assert guardian.come_to_rest(0, ZERO, SETUP)
    assert firmware.torques == (0.0, 0.0)
    assert firmware.device is None


@given(before=torques, last=torques, lost=st.integers(2, 9))
def test_lost_byte_never_increases_the_torque(before, last, lost):
    firmware = board()
    firmware.receive(SETUP + move_message((1, 2), before), 0.0)
    message = move_message((1, 2), last)
    asked = max(map(abs, (*before, *last))) + TORQUE_LIMIT / 4095
    with pytest.MonkeyPatch.context() as patch:
        Wire(firmware, patch).write(0, message[:lost] + message[lost + 1 :])
        assert max(map(abs, firmware.torques)) <= asked
        guardian.resynchronise(0, SETUP)
        assert max(map(abs, firmware.torques)) <= asked
        assert guardian.come_to_rest(0, ZERO, SETUP)
    assert firmware.torques == (0.0, 0.0)


@given(garbage=st.binary(max_size=60))
def test_board_comes_to_rest_after_arbitrary_bytes(garbage):
    firmware = board()
    firmware.receive(SETUP + move_message((1, 2), (0.1, -0.1)), 0.0)
    firmware.receive(garbage, 0.0)
    with pytest.MonkeyPatch.context() as patch:
        Wire(firmware, patch)
        confirmed = guardian.come_to_rest(0, ZERO, SETUP)
    assert not confirmed or firmware.torques == (0.0, 0.0)


def test_unresponsive_board_is_not_confirmed_at_rest(memory_wire):
    memory_wire(SimpleNamespace(receive=lambda data, now: b""))
    assert not guardian.come_to_rest(0, ZERO, SETUP)


# --- homing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lateness", [1.0, 50.0])
@pytest.mark.parametrize("hold", [0.05, 0.2, 1.0])
def test_emulated_operator_holds_the_arms_until_a_late_driver_has_homed_them(hold, lateness, memory_wire, monkeypatch):
    tables = []
    monkeypatch.setattr(emulated.child, "spawn", lambda module, table, name: tables.append(table) or nullcontext(""))
    device = devices.create_device("pantograph", {"emulated": True, "hold": hold, "homing_timeout": 600.0})
    device._far_end(ExitStack())
    (table,) = tables
    firmware = Firmware(Arms(PROFILES["gen-1"], NO_HAND, held=table["held"], mass=0.1, damping=0.5))
    wire = memory_wire(firmware)
    wire.lateness = lateness
    monkeypatch.setattr(drivers, "pause", wire.sleep)
    device._home(Board(0, device._mechanism, device.settings, 0))
    assert MECHANISMS["gen-1"].contains(firmware.arms.angles(wire.time))


# --- ports ------------------------------------------------------------------------------------------------------------


def terminal(system, name, identity):
    """Create a terminal as sysfs shows it: its device is an interface of a USB device."""
    interface = system.parent / "usb" / name / "interface"
    interface.mkdir(parents=True)
    vendor, product = identity.split(":")
    (interface.parent / "idVendor").write_text(f"{vendor}\n")
    (interface.parent / "idProduct").write_text(f"{product}\n")
    (system / name).mkdir(parents=True)
    (system / name / "device").symlink_to(interface)


@pytest.fixture
def system(tmp_path):
    folder = tmp_path / "tty"
    folder.mkdir()
    terminal(folder, "ttyACM0", "0403:6001")
    (folder / "ttyACM7").mkdir()  # behind no USB device
    return folder


def test_boards_are_found_among_other_terminals(system):
    with pytest.raises(DeviceNotFoundError, match=r"no hAPI board .*device\.emulated=true"):
        boards.find_port(system)
    terminal(system, "ttyACM1", "2341:804D")
    assert boards.find_port(system) == "/dev/ttyACM1"
    terminal(system, "ttyACM2", "03eb:2157")
    with pytest.raises(DeviceOpenError, match=r"device\.port=/dev/ttyACM1 or /dev/ttyACM2"):
        boards.find_port(system)
    with pytest.raises(DeviceNotFoundError, match="there is no /dev/ttyACM99"):
        boards.open_port("/dev/ttyACM99")


@pytest.fixture
def terminal_pair():
    """Return the master of a pseudo terminal and the path of its slave."""
    master, slave = os.openpty()
    path = os.ttyname(slave)
    os.close(slave)
    yield master, path
    os.close(master)


def test_file_is_rejected_as_a_port(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(DeviceOpenError, match="no serial port"):
        boards.open_port(str(file))
    assert file.read_text() == "x"


def test_port_in_use_is_rejected_until_closed(terminal_pair):
    _, path = terminal_pair
    first = boards.open_port(path)
    with pytest.raises(DeviceOpenError, match="another"):
        boards.open_port(path)
    os.close(first)
    os.close(boards.open_port(path))


@pytest.mark.parametrize(
    ("number", "remedy"), [(13, "usermod -aG dialout"), (16, "fuser -v"), (5, "Input/output error")]
)
def test_open_error_names_its_remedy(number, remedy, monkeypatch):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(bus.os, "open", refuse)
    with pytest.raises(DeviceOpenError, match=remedy):
        boards.open_port("/dev/ttyACM0")


def test_port_is_transparent(terminal_pair):
    master, path = terminal_pair
    port = boards.open_port(path)
    assert stat.S_ISCHR(os.fstat(port).st_mode)
    every = bytes(range(256))
    os.write(port, every)
    os.write(master, every)
    assert os.read(master, 300) == every
    assert os.read(port, 300) == every
    os.close(port)


# --- mechanisms -------------------------------------------------------------------------------------------------------


every_mechanism = pytest.mark.parametrize("name", MECHANISMS)
unit = st.floats(-1.0, 1.0)


@kernel
def take_angles(record, time, left, right):
    """Take the angles of the inner links [degree] at `time` [s]."""
    s = record[0]
    s.now = time
    place_handle(s, left, right)
    estimate_velocity(s)


@kernel
def take_force(record, fx, fy):
    """Compute the torques for a force [N]."""
    drive_motors(record[0], fx, fy)


def new_record(mechanism):
    """Return the record of a pantograph, (1,), whose position has a resolution of 10 um."""
    record = np.zeros(1, PANTOGRAPH)
    fill_velocity(record["estimator"], VelocitySettings(), 1e-5, 1e-3)
    fill_mechanism(record, mechanism)
    return record


def record_at(name, position):
    mechanism = MECHANISMS[name]
    record = new_record(mechanism)
    prepare_velocity(record["estimator"])
    angles = np.degrees(mechanism.linkage.joints([np.array(position) + mechanism.centre]))[0]
    take_angles(record, 0.0, *angles)
    return record


@every_mechanism
def test_workspace_and_home_are_clear_of_singular_poses(name):
    mechanism = MECHANISMS[name]
    axes = (
        np.linspace(-half, half, 41) + middle
        for half, middle in zip(mechanism.half_size, mechanism.centre, strict=True)
    )
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    joints = mechanism.linkage.joints(grid)
    np.testing.assert_allclose(mechanism.linkage.positions(joints), grid, atol=1e-12)
    clearance = mechanism.linkage.clearance(joints)
    assert clearance[:, 0].min() > CLEARANCE
    assert clearance[:, 1].min() > 0.1
    home = np.radians([mechanism.home])
    assert np.isfinite(mechanism.linkage.positions(home)).all()
    assert mechanism.linkage.clearance(home)[0, 0] > CLEARANCE


@every_mechanism
@given(x=unit, y=unit, direction=st.floats(0.0, 2.0 * math.pi))
def test_largest_force_is_within_the_torque_limit(name, x, y, direction):
    mechanism = MECHANISMS[name]
    record = record_at(name, np.array((x, y)) * mechanism.half_size)
    largest = devices.create_device("pantograph", {"mechanism": name}).spec.max_force
    force = largest * np.array((math.cos(direction), math.sin(direction)))
    take_force(record, *force)
    torques = record["torques"][0]
    assert np.abs(torques).max() <= MAX_TORQUE
    jacobian = mechanism.linkage.jacobians(record["angles"])[0]
    np.testing.assert_allclose(np.linalg.solve(jacobian.T, torques), force, rtol=0.01, atol=1e-9)


@every_mechanism
@given(x=unit, y=unit, fx=unit, fy=unit)
def test_emulated_arms_get_the_commanded_force(name, x, y, fx, fy):
    mechanism = MECHANISMS[name]
    position = 0.99 * np.array((x, y)) * mechanism.half_size
    arms = ARMS[name]
    arms.joystick._record["handle"] = position
    record = record_at(name, position)
    take_force(record, fx, fy)
    np.testing.assert_allclose(arms.force(tuple(record["torques"][0])), (fx, fy), atol=1e-6)


@given(direction=st.floats(0.0, 2.0 * math.pi), excess=st.floats(2.0, 100.0))
def test_limited_force_keeps_its_direction(direction, excess):
    record = record_at("gen-1", (0.01, 0.02))
    force = excess * 10.0 * np.array((math.cos(direction), math.sin(direction)))
    take_force(record, *force)
    torques = record["torques"][0]
    assert np.abs(torques).max() == pytest.approx(MAX_TORQUE)
    felt = np.linalg.solve(MECHANISMS["gen-1"].linkage.jacobians(record["angles"])[0].T, torques)
    assert felt[0] * force[1] - felt[1] * force[0] == pytest.approx(0.0, abs=1e-9 * np.hypot(*force))
    assert felt @ force > 0.0


def folded_record(between):
    """A gen-1 pantograph whose outer links make an angle with this sine: the elbows are close to each other."""
    half = 0.07 * math.sin(math.asin(between) / 2.0)
    angle = math.degrees(math.acos((0.01 - half) / 0.05))
    record = new_record(MECHANISMS["gen-1"])
    take_angles(record, 0.0, angle, 180.0 - angle)
    return record


@pytest.mark.parametrize(
    ("clearance", "part"), [(1.5, 1.0), (1.001, 1.0), (0.75, 0.5), (0.6, 0.2), (0.4999, 0.0), (0.1, 0.0)]
)
def test_force_fades_towards_a_singular_pose(clearance, part):
    linkage = MECHANISMS["gen-1"].linkage
    record = folded_record(clearance * CLEARANCE)
    assert linkage.clearance(record["angles"])[0, 0] == pytest.approx(clearance * CLEARANCE)
    take_force(record, 1e-3, 2e-3)
    expected = part * linkage.jacobians(record["angles"])[0].T @ (1e-3, 2e-3)
    np.testing.assert_allclose(record["torques"][0], expected, atol=1e-12)


def test_coincident_elbows_give_nan_and_no_torque():
    record = new_record(MECHANISMS["2diy"])
    with np.errstate(invalid="ignore", divide="ignore"):  # uncompiled, NumPy would have something to say
        take_angles(record, 0.0, 90.0, 90.0)
        take_force(record, 1.0, 1.0)
    assert np.isnan(record["position"][0]).all()
    np.testing.assert_array_equal(record["torques"][0], (0.0, 0.0))


def test_velocity_resets_with_the_clock():
    record = record_at("gen-1", (0.0, 0.0))
    left, right = np.degrees(record["angles"][0])
    for tick in range(20):
        take_angles(record, 5.0 + tick * 1e-3, left + 0.1 * tick, right)
    velocity = record["estimator"]["velocity"][0]
    assert np.hypot(*velocity) > 0.01
    take_angles(record, 0.0, left, right)
    np.testing.assert_array_equal(velocity, (0.0, 0.0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mechanism": "gen-2"}, r"device\.mechanism = 'gen-2': must be one of gen-1, 2diy, 2diy-38mm"),
        ({"port": 3}, r"device\.port = 3: must be a serial port"),
        ({"resyncs": 1.5}, r"device\.resyncs = 1\.5: must be a whole number"),
        ({"watchdog": 5.0}, r"device\.watchdog = 5\.0: .*at most 1 s"),
        (
            {"reply_timeout": 0.06},
            r"device\.reply_timeout = 0\.06 s: must be at most half of device\.watchdog = 0\.1 s",
        ),
        ({"emulated": True, "port": "/dev/ttyACM0"}, r"device\.port = .*brings its own"),
    ],
)
def test_invalid_settings_are_rejected(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        devices.create_device("pantograph", settings)


def test_open_requires_the_home_confirmation():
    with pytest.raises(DeviceOpenError, match=re.escape("device.at_home=true")):
        devices.create_device("pantograph").open()
