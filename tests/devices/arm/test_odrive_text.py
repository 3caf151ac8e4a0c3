"""Text over the serial port of the emulated drive: lines, answers, packets, and what goes wrong with them."""

import contextlib
import errno
import struct
from collections.abc import Iterator

import pytest
import usb.core
import usb.util
from hypothesis import given
from hypothesis import strategies as st

from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE, POSITION_CONTROL, TORQUE_CONTROL, VELOCITY_CONTROL
from devices.emulators.odrive.board import NATIVE, TEXT, TEXT_IN, TEXT_OUT, EmulatedOdrive
from devices.emulators.odrive.text import TextProtocol
from devices.emulators.odrive.usb_backend import EmulatedOdriveBackend
from devices.emulators.times import FreeTime
from tests.devices.arm.odrive_rig import alone, let_go_by

SOON = 50
"""Time limit of a transfer that may not come [ms]."""


def say(protocol: TextProtocol, *packets: bytes) -> list[bytes]:
    return [answer for packet in packets for answer in protocol.take(packet)]


@pytest.fixture
def board() -> EmulatedOdrive:
    return EmulatedOdrive()


@pytest.fixture
def port(board: EmulatedOdrive) -> Iterator[usb.core.Device]:
    """The drive, with the kernel's driver gone from its serial port."""
    device = usb.core.find(backend=EmulatedOdriveBackend(board))
    device.detach_kernel_driver(TEXT)
    usb.util.claim_interface(device, TEXT)
    yield device
    usb.util.dispose_resources(device)


def read(device: usb.core.Device, size: int = 64) -> bytes:
    return bytes(device.read(TEXT_IN, size, SOON))


def fails(device: usb.core.Device, number: int, text: bytes | None = None) -> None:
    """A transfer fails: of `text` out, or in."""
    with pytest.raises(usb.core.USBError) as caught:
        device.write(TEXT_OUT, text, SOON) if text is not None else read(device)
    assert caught.value.errno == number


# --- lines -----------------------------------------------------------------------------------------------------------


def test_a_position_line_sets_three_inputs_and_feeds_the_watchdog_without_a_word() -> None:
    inside, _ = alone()
    axis = inside.axes[1]
    axis.values |= {"config.watchdog_timeout": 0.1, "controller.config.control_mode": TORQUE_CONTROL}
    axis.feed()
    axis.values["config.enable_watchdog"] = True
    axis.request(CLOSED_LOOP)
    protocol = TextProtocol(inside)
    for _ in range(5):
        let_go_by(inside, 0.08)
        assert say(protocol, b"p 1 0.001 -0.25 1.5e-2\n") == []
    assert axis.values["current_state"] == CLOSED_LOOP
    assert axis.values["controller.config.control_mode"] == POSITION_CONTROL
    given = [axis.values[f"controller.input_{name}"] for name in ("pos", "vel", "torque")]
    assert given == list(struct.unpack("<3f", struct.pack("<3f", 0.001, -0.25, 0.015)))
    say(protocol, b"p 1 0.002\n")
    assert axis.values["controller.input_vel"] == -0.25  # what is left out stays
    assert inside.axes[0].values.get("controller.input_pos", 0.0) == 0.0
    let_go_by(inside, 0.11)
    assert axis.values["current_state"] == IDLE


def test_feedback_is_what_the_encoder_says() -> None:
    inside, plant = alone(friction=0.0)
    plant.angles, plant.speeds = (0.3, -0.75), (0.5, 0.0)
    let_go_by(inside, 0.1)
    inside.axes[1].set_count(-6144)
    let_go_by(inside, 0.1)
    first, second = (answer.split() for answer in say(TextProtocol(inside), b"f 0\nf 1\n"))
    for words, axis in zip((first, second), inside.axes, strict=True):
        found = [axis.values["encoder.pos_estimate"], axis.values["encoder.vel_estimate"]]
        assert [float(word) for word in words] == pytest.approx(found, abs=1e-6)
        assert [len(word.partition(b".")[2]) for word in words] == [6, 6]
    assert float(second[0]) == pytest.approx(-0.75, abs=1e-3)


def test_speed_torque_limits_count_and_watchdog() -> None:
    inside, _ = alone()
    first, second = inside.axes
    protocol = TextProtocol(inside)
    said = say(protocol, b"v 0 1.5\nc 1 0.25\nq 0 2 3 0.5\nesl 1 4096\nu 1\nt 1 0.5\n")
    assert said == [b"encoder set to 4096\r\n"]
    assert first.values["controller.input_vel"] == 1.5
    assert first.values["controller.config.vel_limit"] == 3.0
    assert first.values["motor.config.torque_lim"] == 0.5
    assert second.values["controller.input_torque"] == 0.25
    assert first.values["controller.config.control_mode"] == POSITION_CONTROL
    let_go_by(inside, 0.01)
    assert second.values["encoder.pos_estimate"] == pytest.approx(0.5, abs=1e-3)
    say(protocol, b"v 0 1.5\nc 1 0.25\n")
    modes = [axis.values["controller.config.control_mode"] for axis in inside.axes]
    assert modes == [VELOCITY_CONTROL, TORQUE_CONTROL]


def test_properties_are_read_and_written_by_name() -> None:
    inside, _ = alone()
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
    assert say(protocol, b"r axis0.motor.error\n") == [b"343597383\r\n"]  # nine characters, whatever the number
    assert say(protocol, b"sc\nr axis0.motor.error\n") == [b"0\r\n"]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b"p 0", b"invalid command format"),
        (b"p", b"invalid command format"),
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
def test_a_wrong_line_is_told_and_does_nothing(line: bytes, answer: bytes) -> None:
    inside, _ = alone()
    before = [dict(axis.values) for axis in inside.axes]
    assert say(TextProtocol(inside), line + b"\n") == [answer + b"\r\n"]
    assert [axis.values for axis in inside.axes] == before


def test_a_checksum_is_checked_and_answered_and_a_comment_is_not_read() -> None:
    inside, _ = alone()
    protocol = TextProtocol(inside)
    assert say(protocol, b"r vbus_voltage *93\n") == [b"24.000000*40\r\n"]
    assert say(protocol, b"r vbus_voltage *94\nr vbus_voltage *\n") == []
    assert say(protocol, b"r vbus_voltage ; how much is it?\n") == [b"24.000000\r\n"]


# --- lines and packets -----------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 40), max_size=12))
def test_lines_may_be_split_anyhow(lengths: list[int]) -> None:
    inside, _ = alone()
    text = b"p 0 0.5 0.25\nr vbus_voltage\rp 1 -1\nf 0!r fw_version_minor\n"
    packets = []
    for length in lengths:
        packets.append(text[:length])
        text = text[length:]
    said = say(TextProtocol(inside), *packets, text)
    assert said == [b"24.000000\r\n", b"0.000000 0.000000\r\n", b"5\r\n"]
    assert [axis.values["controller.input_pos"] for axis in inside.axes] == [0.5, -1.0]


def test_a_line_that_is_too_long_is_dropped_up_to_its_end() -> None:
    inside, _ = alone()
    protocol = TextProtocol(inside)
    assert say(protocol, b"r " + b"x" * 252, b"\n") == [b"invalid property\r\n"]
    long = b"r vbus_voltage " + b"x" * 300
    packets = [long[start : start + 64] for start in range(0, len(long), 64)]
    assert say(protocol, *packets, b"r vbus_voltage", b"\nr fw_version_minor\n") == [b"5\r\n"]


@given(st.lists(st.binary(max_size=64), max_size=8))
def test_noise_is_survived(packets: list[bytes]) -> None:
    inside, _ = alone()
    protocol = TextProtocol(inside)
    assert all(answer.endswith(b"\r\n") for answer in say(protocol, *packets))
    let_go_by(inside, 1e-3)
    say(protocol, b"\n" * 2)
    assert say(protocol, b"r fw_version_minor\n") == [b"5\r\n"]


# --- on the bus ------------------------------------------------------------------------------------------------------


def test_it_has_an_interface_of_its_own_that_the_kernel_holds_at_first(board: EmulatedOdrive) -> None:
    device = usb.core.find(backend=EmulatedOdriveBackend(board))
    assert [device.is_kernel_driver_active(number) for number in (0, TEXT, NATIVE)] == [True, True, False]
    with pytest.raises(usb.core.USBError) as caught:
        usb.util.claim_interface(device, TEXT)
    assert caught.value.errno == errno.EBUSY
    usb.util.claim_interface(device, NATIVE)
    device.detach_kernel_driver(TEXT)
    assert not device.is_kernel_driver_active(0)  # it gives up both
    usb.util.claim_interface(device, TEXT)
    assert set(board.owners) == {TEXT, NATIVE}
    usb.util.release_interface(device, TEXT)
    assert set(board.owners) == {NATIVE}
    device.attach_kernel_driver(TEXT)
    assert device.is_kernel_driver_active(0)
    usb.util.dispose_resources(device)
    board.unplug()
    board.plug()
    assert board.drivers == {0, TEXT}


def test_native_and_text_are_used_at_once(board: EmulatedOdrive, port: usb.core.Device) -> None:
    request = struct.pack("<HHHH", 0x81, 0x8000 | 2, 4, board.inside.checksum)
    port.write(0x03, request, SOON)
    port.write(TEXT_OUT, b"r fw_version_minor\n", SOON)  # though an answer waits at the other endpoint
    assert read(port) == b"5\r\n"
    assert bytes(port.read(0x83, 64, SOON)) == b"\x81\x80" + struct.pack("<f", 24.0)
    fails(port, errno.ETIMEDOUT)


def test_several_lines_in_a_transfer_are_answered_in_two_packets(port: usb.core.Device) -> None:
    lines = b"p 0 0.0001 0.002 0.03\np 1 0.0001 0.002 0.03\nf 0\nf 1\nr fw_version_minor\n"
    assert len(lines) > 64
    assert port.write(TEXT_OUT, lines, SOON) == len(lines)
    assert read(port) == b"0.000000 0.000000\r\n"  # went out as soon as it was there
    assert read(port) == b"0.000000 0.000000\r\n5\r\n"
    fails(port, errno.ETIMEDOUT)


def test_64_bytes_that_wait_are_never_sent_until_the_supply_was_off(
    board: EmulatedOdrive, port: usb.core.Device
) -> None:
    port.write(TEXT_OUT, b"r vbus_voltage\n" * 8, SOON)
    assert read(port) == b"24.000000\r\n"
    for _ in range(2):
        fails(port, errno.ETIMEDOUT)
        port.write(TEXT_OUT, b"r fw_version_minor\n", SOON)
        with contextlib.suppress(usb.core.USBError):
            port.reset()
    port.write(TEXT_OUT, b"r vbus_voltage\n" * 100, SOON)  # which is lost, and not stored
    board.unplug()
    board.plug()
    device = usb.core.find(backend=EmulatedOdriveBackend(board))
    device.detach_kernel_driver(TEXT)
    device.write(TEXT_OUT, b"r fw_version_minor\n", SOON)
    assert read(device) == b"5\r\n"
    usb.util.dispose_resources(device)


def test_what_was_not_read_before_a_reset_comes_in_front_of_the_next_answer(port: usb.core.Device) -> None:
    port.write(TEXT_OUT, b"r vbus_voltage\nr fw_version_m", SOON)
    port.reset()
    fails(port, errno.ETIMEDOUT)
    port.write(TEXT_OUT, b"r fw_version_minor\n", SOON)
    assert read(port) == b"24.000000\r\n5\r\n"


def test_without_a_claim_nothing_is_exchanged(board: EmulatedOdrive) -> None:
    backend = EmulatedOdriveBackend(board)
    handle = backend.open_device(next(backend.enumerate_devices()))
    backend.claim_interface(handle, NATIVE)
    for driven, number in ((True, errno.EBUSY), (False, errno.EINVAL)):
        if not driven:
            backend.detach_kernel_driver(handle, TEXT)
        with pytest.raises(usb.core.USBError) as caught:
            backend.bulk_write(handle, TEXT_OUT, TEXT, b"f 0\n", SOON)
        assert caught.value.errno == number


# --- what goes wrong -------------------------------------------------------------------------------------------------

OUT, IN = b"f 0\n", None


@pytest.mark.parametrize(
    ("fault", "way", "number"),
    [
        ("nak", OUT, errno.ETIMEDOUT),
        ("nak", IN, errno.ETIMEDOUT),
        ("write-error", OUT, errno.EIO),
        ("read-error", IN, errno.EIO),
        ("stall", OUT, errno.EPIPE),
        ("stall", IN, errno.EPIPE),
        ("unplug", OUT, errno.ENODEV),
        ("unplug", IN, errno.ENODEV),
        ("lost-answer", IN, errno.ETIMEDOUT),
    ],
)
def test_faults_of_the_bus_are_those_of_the_native_endpoints(
    board: EmulatedOdrive, port: usb.core.Device, fault: str, way: bytes | None, number: int
) -> None:
    if fault != "lost-answer":
        port.write(TEXT_OUT, b"f 0\n", SOON)
    board.faults.set(fault)
    if fault == "lost-answer":
        port.write(TEXT_OUT, b"p 0 0.5\nf 0\n", SOON)
        assert board.inside.axes[0].values["controller.input_pos"] == 0.5
    fails(port, number, way)
    board.faults.clear()
    if fault == "stall":
        fails(port, errno.EPIPE, way)
        port.clear_halt(TEXT_IN)
        port.clear_halt(TEXT_OUT)
    if fault not in {"unplug", "lost-answer"}:
        assert read(port) == b"0.000000 0.000000\r\n"


def test_short_answers_and_another_table(board: EmulatedOdrive, port: usb.core.Device) -> None:
    board.faults.set("short")
    port.write(TEXT_OUT, b"f 0\n", SOON)
    assert read(port) == b"\r\n"
    board.faults.clear()
    board.faults.set("wrong-crc")  # of which text has none
    port.write(TEXT_OUT, b"r fw_version_minor\n", SOON)
    assert read(port) == b"5\r\n"


def test_a_late_transfer_is_late() -> None:
    board = EmulatedOdrive(time=FreeTime())
    device = usb.core.find(backend=EmulatedOdriveBackend(board))
    device.detach_kernel_driver(TEXT)
    usb.util.claim_interface(device, TEXT)
    board.faults.set("delay-5ms")
    before = board.now
    device.write(TEXT_OUT, b"f 0\n", SOON)
    assert board.now - before == pytest.approx(5e-3)
    read(device)
    assert board.now - before == pytest.approx(10e-3)
