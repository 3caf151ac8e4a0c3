"""The hAPI messages, against bytes from outside, and the emulated board's program, against every lost byte."""

import math
import struct
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.emulators.hapi.arms import PROFILES, Arms
from devices.emulators.hapi.firmware import TORQUE_LIMIT, Firmware
from devices.pantograph import guardian, wire
from devices.pantograph.mechanisms import MAX_TORQUE, MECHANISMS
from devices.pantograph.wire import WireError, move_message, parse_reply, setup_message

NO_HAND = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
ARMS = {name: Arms(profile, NO_HAND, mass=0.1, damping=0.5) for name, profile in PROFILES.items()}
"""Built once; as long as no time goes by the operator holds them at home."""

torques = st.tuples(st.floats(-MAX_TORQUE, MAX_TORQUE), st.floats(-MAX_TORQUE, MAX_TORQUE))


def board(mechanism="gen-1"):
    ARMS[mechanism].go_home()
    return Firmware(ARMS[mechanism])


def setup_of(mechanism):
    return setup_message(mechanism.ports, mechanism.direction, mechanism.home, mechanism.counts)


SETUP = setup_of(MECHANISMS["gen-1"])
ZERO = move_message((1, 2), (0.0, 0.0))


def test_setup_is_the_published_example():
    expected = bytes.fromhex("0105 03 0000 03 0000 00 00") + struct.pack("<4f", 180.0, 13824.0, 0.0, 13824.0)
    assert SETUP == expected
    assert len(SETUP) == 26


def test_move_is_the_published_example_but_for_the_lowest_bytes():
    message = move_message((1, 2), (0.01, -0.02))
    published = bytes.fromhex("0205 0ad7233c 0ad7a3bc")
    assert message[:2] == published[:2]
    assert (message[3:6], message[7:]) == (published[3:6], published[7:])
    assert message[2] == message[6] == 0


@given(pair=torques)
def test_torques_lose_next_to_nothing(pair):
    sent = struct.unpack("<2f", move_message((1, 2), pair)[2:])
    for asked, got in zip(pair, sent, strict=True):
        assert got == pytest.approx(asked, rel=3.1e-5, abs=1e-38)
        assert abs(got) <= abs(struct.unpack("<f", struct.pack("<f", asked))[0])


def test_swapped_ports_swap_everything_that_goes_by_port():
    assert move_message((2, 1), (0.01, -0.02)) == move_message((1, 2), (-0.02, 0.01))
    reply = struct.pack("<Bff", wire.DEVICE_ID, -61.0, 241.0)
    assert parse_reply((2, 1), reply) == (241.0, -61.0)
    assert parse_reply((1, 2), reply) == (-61.0, 241.0)


@given(data=st.binary(max_size=12))
def test_a_reply_is_pairs_of_numbers_or_refused(data):
    try:
        angles = parse_reply((1, 2), data)
    except WireError as error:
        assert "the board sent" in str(error)
    else:
        assert data == struct.pack("<Bff", wire.DEVICE_ID, *angles)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_reply_of_no_numbers_is_refused(bad):
    with pytest.raises(WireError, match="no numbers"):
        parse_reply((1, 2), struct.pack("<Bff", wire.DEVICE_ID, 1.0, bad))


@pytest.mark.parametrize("name", MECHANISMS)
def test_driver_and_emulator_agree_on_arms_and_ports(name):
    mechanism, firmware = MECHANISMS[name], board(name)
    assert firmware.receive(setup_of(mechanism), 0.0) == b""
    reply = firmware.receive(move_message(mechanism.ports, (0.03, -0.05)), 0.0)
    assert parse_reply(mechanism.ports, reply) == pytest.approx(mechanism.home, abs=1e-4)
    assert firmware.torques == pytest.approx((0.03, -0.05), abs=TORQUE_LIMIT / 4095)


# --- the emulated board behaves as the facts say ---------------------------------------------------------------------


def test_torques_survive_silence_and_reset():
    firmware = board()
    firmware.receive(SETUP + move_message((1, 2), (0.1, 0.1)), 0.0)
    firmware.receive(guardian.RESET, 0.2)
    firmware.receive(b"", 5.0)
    assert firmware.torques == pytest.approx((0.1, 0.1), abs=1e-4)
    assert firmware.device is None


def test_torques_are_cut_to_what_the_motors_may():
    firmware = board()
    firmware.receive(SETUP + move_message((1, 2), (7.0, -7.0)), 0.0)
    assert firmware.torques == (TORQUE_LIMIT, -TORQUE_LIMIT)


def test_a_short_move_blocks_for_a_second():
    firmware = board()
    firmware.receive(SETUP, 0.0)
    assert firmware.receive(move_message((1, 2), (0.1, 0.1))[:-1], 0.0) == b""
    assert firmware.receive(b"", 0.9) == b""
    assert len(firmware.receive(b"", 1.1)) == guardian.REPLY_LENGTH


def test_a_lost_byte_is_never_made_up_for_by_what_follows():
    firmware = board()
    firmware.receive(SETUP, 0.0)
    message = move_message((1, 2), (0.1, 0.1))
    replies = [firmware.receive(message[:4] + message[5:], 0.0)]
    replies += [firmware.receive(message, 1e-3 * k) for k in range(1, 20)]
    assert replies.count(b"") > 1


class Wire:
    """Stands in for the port: the functions of the guardian talk to a program in memory."""

    def __init__(self, firmware, monkeypatch):
        self.firmware, self.time, self.pending = firmware, 0.0, b""
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
        self.time += duration


@pytest.fixture
def memory_wire():
    with pytest.MonkeyPatch.context() as patch:
        yield lambda firmware: Wire(firmware, patch)


@pytest.mark.parametrize("lost", range(10))
def test_a_board_comes_to_rest_whatever_byte_of_the_last_message_was_lost(lost, memory_wire):
    firmware = board()
    firmware.receive(SETUP + move_message((1, 2), (0.1, -0.1)), 0.0)
    message = move_message((1, 2), (0.11, -0.09))
    memory_wire(firmware).write(0, message[:lost] + message[lost + 1 :])
    assert guardian.come_to_rest(0, ZERO, SETUP)
    assert firmware.torques == (0.0, 0.0)
    assert firmware.device is None


@given(before=torques, last=torques, lost=st.integers(2, 9))
def test_a_byte_lost_from_a_number_never_makes_a_larger_torque_than_those_asked_for(before, last, lost):
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
def test_a_board_comes_to_rest_after_any_garbage(garbage):
    firmware = board()
    firmware.receive(SETUP + move_message((1, 2), (0.1, -0.1)), 0.0)
    firmware.receive(garbage, 0.0)
    with pytest.MonkeyPatch.context() as patch:
        Wire(firmware, patch)
        confirmed = guardian.come_to_rest(0, ZERO, SETUP)
    assert not confirmed or firmware.torques == (0.0, 0.0)


def test_a_dead_board_is_not_called_at_rest(memory_wire):
    class Dead:
        def receive(self, data, now):
            return b""

    memory_wire(Dead())
    assert not guardian.come_to_rest(0, ZERO, SETUP)
