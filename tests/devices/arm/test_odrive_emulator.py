"""The emulated drive by itself: its protocol, its control law, its watchdog, its errors."""

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE, STEP, TORQUE_CONTROL, VELOCITY_CONTROL
from devices.emulators.odrive.board import JUMP, EmulatedOdrive
from devices.emulators.odrive.faults import ODRIVE_FAULTS, OdriveFaults
from devices.emulators.odrive.firmware import LONGEST_LOG, Firmware
from devices.emulators.times import FreeTime
from haptics.errors import ConfigurationError
from tests.devices.arm.odrive_rig import IDS, alone, let_go_by

ACKNOWLEDGE = 0x8000


def packet(inside: Firmware, endpoint: int, payload: bytes = b"", length: int = 8, crc: int | None = None) -> bytes:
    trailer = (inside.checksum if endpoint & 0x7FFF else 1) if crc is None else crc
    return struct.pack("<HHH", 0x81, endpoint, length) + payload + struct.pack("<H", trailer)


def ask(inside: Firmware, name: str, payload: bytes = b"", length: int = 8) -> bytes | None:
    answer = inside.handle(packet(inside, IDS[name] | ACKNOWLEDGE, payload, length))
    assert answer is None or answer[:2] == b"\x81\x80"
    return answer and answer[2:]


# --- the protocol ----------------------------------------------------------------------------------------------------


def test_a_write_gives_what_was_there_before() -> None:
    inside, _ = alone()
    assert ask(inside, "axis1.controller.input_vel", struct.pack("<f", 1.5)) == struct.pack("<f", 0.0)
    assert ask(inside, "axis1.controller.input_vel", struct.pack("<f", 2.5)) == struct.pack("<f", 1.5)
    assert ask(inside, "axis0.controller.input_vel") == struct.pack("<f", 0.0)


def test_a_wrong_trailer_is_met_with_silence() -> None:
    inside, _ = alone()
    before = dict(inside.axes[0].values)
    wrong = packet(
        inside, IDS["axis0.controller.input_vel"] | ACKNOWLEDGE, struct.pack("<f", 1.0), 0, inside.checksum ^ 1
    )
    assert inside.handle(wrong) is None
    assert inside.axes[0].values == before
    assert not inside.received


def test_a_long_run_does_not_fill_the_memory() -> None:
    inside, _ = alone()
    for number in range(LONGEST_LOG + 3):
        inside.handle(packet(inside, IDS["axis0.controller.input_vel"], struct.pack("<f", number)))
    assert len(inside.received) == LONGEST_LOG
    assert struct.unpack_from("<f", inside.received[-1], 6) == (LONGEST_LOG + 2,)


def test_an_unknown_endpoint_is_met_with_a_head_only() -> None:
    inside, _ = alone()
    assert inside.handle(packet(inside, 5000 | ACKNOWLEDGE)) == b"\x81\x80"


def test_what_wants_no_answer_gets_none_and_is_done() -> None:
    inside, _ = alone()
    assert inside.handle(packet(inside, IDS["test_property"], struct.pack("<I", 7), 0)) is None
    assert ask(inside, "test_property") == struct.pack("<I", 7)


def test_what_can_only_be_read_stays() -> None:
    inside, _ = alone()
    assert ask(inside, "vbus_voltage", struct.pack("<f", 5.0)) == struct.pack("<f", 24.0)
    assert ask(inside, "vbus_voltage") == struct.pack("<f", 24.0)


def test_the_table_comes_in_pages_of_61_bytes() -> None:
    inside, _ = alone()
    text = b""
    while page := (inside.handle(packet(inside, ACKNOWLEDGE, struct.pack("<I", len(text)), 512)) or b"")[2:]:
        assert len(page) <= 61
        text += page
    assert text == inside.text


def test_functions_take_arguments_and_give_results() -> None:
    inside, _ = alone()
    for total in (3, 6):
        inside.handle(packet(inside, 771 | ACKNOWLEDGE, struct.pack("<i", 3), 0))
        inside.handle(packet(inside, IDS["test_function"] | ACKNOWLEDGE, b"", 0))
        answer = inside.handle(packet(inside, 772 | ACKNOWLEDGE, b"", 4))
        assert answer is not None
        assert struct.unpack("<i", answer[2:]) == (total,)


@given(st.lists(st.tuples(st.sampled_from(sorted(IDS.values())), st.binary(max_size=12), st.booleans()), max_size=20))
def test_nothing_that_is_written_makes_it_fall_over(packets: list[tuple[int, bytes, bool]]) -> None:
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
def test_noise_is_dropped(data: bytes) -> None:
    inside, _ = alone()
    if struct.unpack("<H", data[-2:].rjust(2, b"\0"))[0] not in {1, inside.checksum}:
        assert inside.handle(data) is None
        assert not inside.received


def test_what_is_not_a_number_is_an_error_of_the_motor() -> None:
    inside, plant = alone()
    inside.axes[0].request(CLOSED_LOOP)
    ask(inside, "axis0.controller.input_pos", struct.pack("<f", math.nan))
    let_go_by(inside, 0.01)
    assert inside.axes[0].values["motor.error"] == 1 << 16
    assert math.isfinite(plant.angles[0])


# --- the control law -------------------------------------------------------------------------------------------------


def test_it_holds_where_it_was_when_it_began() -> None:
    inside, plant = alone()
    plant.angles = (0.3, -0.7)
    let_go_by(inside, 0.05)
    inside.axes[0].request(CLOSED_LOOP)
    let_go_by(inside, 0.2)
    assert plant.angles == pytest.approx((0.3, -0.7), abs=2e-4)


def test_under_a_load_the_integrator_takes_over_and_the_torque_is_that_of_the_load() -> None:
    inside, plant = alone()
    inside.axes[0].request(CLOSED_LOOP)
    plant.loads = (0.1, 0.0)
    let_go_by(inside, 0.02)
    assert plant.angles[0] > 1e-3
    let_go_by(inside, 3.0)  # six of its time constants, speed gain / integrator gain
    assert plant.angles[0] == pytest.approx(0.0, abs=3e-4)
    assert inside.axes[0].values["controller.vel_integrator_torque"] == pytest.approx(-0.1, abs=0.01)


def test_told_the_speed_of_a_moving_reference_it_does_not_lag() -> None:
    lags = []
    for told in (0.0, 1.0):
        inside, plant = alone()
        axis = inside.axes[0]
        axis.values["controller.config.vel_integrator_gain"] = 0.0
        axis.request(CLOSED_LOOP)
        for step in range(round(0.8 / STEP)):
            axis.values["controller.input_pos"], axis.values["controller.input_vel"] = step * STEP, told
            inside.iterate()
        lags.append(0.8 - plant.angles[0])
    assert lags[0] == pytest.approx(1.0 / 20.0, rel=0.1)  # speed / position gain
    assert abs(lags[1]) < 0.05 * lags[0]


def test_speed_control_and_torque_control() -> None:
    inside, plant = alone(friction=0.0)
    for axis, mode in zip(inside.axes, (VELOCITY_CONTROL, TORQUE_CONTROL), strict=True):
        axis.values["controller.config.control_mode"] = mode
        axis.request(CLOSED_LOOP)
    inside.axes[0].values["controller.input_vel"] = 1.5
    inside.axes[1].values["controller.input_torque"] = 1e-3
    let_go_by(inside, 0.5)
    assert plant.speeds[0] == pytest.approx(1.5, abs=0.02)
    assert plant.speeds[1] == pytest.approx(0.5 * 1e-3 / 2e-4 / 6.2832, rel=0.01)


@settings(max_examples=5)
@given(st.floats(-5.0, 5.0), st.floats(0.5, 5.0))
def test_no_command_drives_it_beyond_current_and_speed(position: float, limit: float) -> None:
    inside, plant = alone()
    axis = inside.axes[0]
    axis.values["motor.config.current_lim"] = limit
    axis.request(CLOSED_LOOP)
    axis.values["controller.input_pos"] = position
    for _ in range(800):
        inside.iterate()
        assert abs(axis.torque) <= 0.04 * limit + 1e-12
        assert abs(plant.speeds[0]) < 2.4


def test_what_is_turned_faster_than_allowed_is_let_go() -> None:
    inside, plant = alone(friction=0.0)
    axis = inside.axes[0]
    axis.request(CLOSED_LOOP)
    plant.loads = (5.0, 0.0)
    let_go_by(inside, 0.05)
    assert (axis.values["error"], axis.values["controller.error"]) == (0x200, 0x1)
    assert (axis.values["current_state"], axis.torque) == (IDLE, 0.0)


@pytest.mark.parametrize(("turns", "speed"), [(0.123456, 0.0), (0.0, 0.7), (-3.0, -1.9)])
def test_the_encoder_tells_within_a_count_or_two(turns: float, speed: float) -> None:
    inside, plant = alone(friction=0.0)
    plant.speeds = (speed, 0.0)
    let_go_by(inside, 0.2)
    inside.axes[0].set_count(round((turns + plant.angles[0]) * 8192) - round(plant.angles[0] * 8192))
    start = plant.angles[0]
    let_go_by(inside, 0.2)
    values = inside.axes[0].values
    assert values["encoder.pos_estimate"] - (plant.angles[0] - start) == pytest.approx(turns, abs=3 / 8192)
    assert values["encoder.vel_estimate"] == pytest.approx(speed, abs=0.05)


# --- watchdog and errors ---------------------------------------------------------------------------------------------


def test_the_watchdog_expires_after_its_time_and_not_before() -> None:
    inside, _ = alone()
    axis = inside.axes[0]
    axis.values["config.watchdog_timeout"] = 0.1
    axis.feed()
    axis.values["config.enable_watchdog"] = True
    axis.request(CLOSED_LOOP)
    let_go_by(inside, 0.1 - STEP)
    assert (axis.values["current_state"], axis.values.get("error", 0)) == (CLOSED_LOOP, 0)
    axis.feed()
    let_go_by(inside, 0.1 - STEP)
    assert axis.values["current_state"] == CLOSED_LOOP
    let_go_by(inside, 3 * STEP)
    assert (axis.values["current_state"], axis.values["error"]) == (IDLE, 0x800)


def test_a_watchdog_that_was_never_fed_expires_at_once() -> None:
    inside, _ = alone()
    axis = inside.axes[0]
    axis.values["config.enable_watchdog"] = True
    inside.iterate()
    assert axis.values["error"] == 0x800


def test_an_error_stays_and_keeps_it_from_being_driven_until_it_is_cleared() -> None:
    inside, _ = alone()
    axis = inside.axes[0]
    axis.fail(0x40, "motor", 0x8)
    axis.request(CLOSED_LOOP)
    let_go_by(inside, 0.01)
    assert axis.values["current_state"] == IDLE
    ask(inside, "clear_errors")
    axis.request(CLOSED_LOOP)
    let_go_by(inside, 0.01)
    assert axis.values["current_state"] == CLOSED_LOOP


def test_without_calibration_it_is_not_driven() -> None:
    inside, _ = alone()
    inside.axes[1].values["encoder.is_ready"] = False
    assert ask(inside, "axis1.requested_state", b"\x08", 0) == b""
    assert inside.axes[1].values["error"] == 0x1
    assert ask(inside, "axis1.requested_state") == b"\0"


# --- on the bus ------------------------------------------------------------------------------------------------------


def test_time_goes_by_when_somebody_looks() -> None:
    board = EmulatedOdrive(time=FreeTime())
    board.plant.speeds = (1.0, 0.0)
    board.time.wait_until(0.5)
    assert board.plant.angles[0] == 0.0
    board.catch_up()
    assert board.plant.angles[0] == pytest.approx(0.5, rel=0.2)


def test_faults_come_and_go_at_their_time() -> None:
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
def test_a_wrong_fault_is_named(text: str) -> None:
    with pytest.raises(ConfigurationError, match="fault of the wire"):
        OdriveFaults([text])


def test_faults_by_hand() -> None:
    faults = OdriveFaults()
    faults.set("nak", "delay-5ms", "delay-1ms")
    assert faults.delay(0.0) == 5e-3
    faults.clear("nak")
    assert faults.at(0.0) == {"delay-5ms", "delay-1ms"}
    faults.clear()
    assert not faults.at(0.0)
    with pytest.raises(ConfigurationError, match=r"nacked.*nak"):
        faults.set("nacked")
    assert set(ODRIVE_FAULTS) >= {"nak", "stall", "unplug", "wrong-crc"}
