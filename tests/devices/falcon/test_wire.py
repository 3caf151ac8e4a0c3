"""Bytes to and from the Falcon, its boot loader and homing, with an emulated Falcon in simulated time."""

import errno
import struct
import subprocess
import sys

import numpy as np
import pytest

from devices.common.bus import TransferError
from devices.common.plane import Plane
from devices.emulators import falcon_guardian
from devices.emulators.falcon import (
    BOOT,
    DEAD,
    MAGIC,
    RUNNING,
    EmulatedFalcon,
    EmulatedFalconBackend,
    Mechanism,
    make_image,
)
from devices.emulators.usb_bus import FreeTime
from devices.falcon import device as driver
from devices.falcon import guardian, wire
from devices.falcon.kinematics import HALF, find_torques, inverse
from haptics.clock import cancelled_by, instructed_by
from haptics.errors import ConfigurationError, DeviceNotFoundError, DeviceOpenError, OpeningCancelled
from haptics.settings import build

HELD = {"name": "minimum-jerk", "points": [[0.0, 0.0]] * 2, "rest": 60.0, "rest_force": 0.0, "rest_grip": 1.0,
        "tremor": 0.0}  # fmt: skip
PLANE = Plane.of(driver.FalconSettings())
EXTENT = PLANE.extent(HALF)


def mechanism(plane=PLANE, sag=0.3):
    """Return a handle that a hand holds in the plane."""
    room = (*plane.extent(HALF), min(HALF))
    return Mechanism(plane.axes.tolist(), plane.middle.tolist(), room, HELD, seed=1, mass=0.2, damping=0.5, sag=sag)


def falcon(state="homed", faults=(), **more):
    return EmulatedFalcon(mechanism(), state=state, faults=faults, time=FreeTime(), **more)


def opened(*units, serial=""):
    return wire.open_line(serial, EmulatedFalconBackend(*units), now=units[0].time.now)


# --- packets written out by hand from the sources ---------------------------------------------------------------------

PACKETS = [
    ((0, 0, 0), 0x0, "<AAAAAAAAAAAAAA>"),
    ((1, -1, 0), wire.GREEN, "<BAAAPPPPAAAACA>"),
    ((0x1234, -0x1234, 4096), wire.RED | wire.HOMING, "<EDCBMMNOAAABJA>"),
    ((32767, -32768, 10), wire.BLUE, "<PPPHAAAIKAAAEA>"),
]


@pytest.mark.parametrize(("motors", "lights", "packet"), PACKETS)
def test_packets_out_have_these_bytes(motors, lights, packet):
    assert wire.encode(motors, lights) == packet.encode()


@pytest.mark.parametrize(
    ("packet", "reply"),
    [
        (b"<AAAAAAAAAAAAAA>", ((0, 0, 0), 0, 0)),
        (b"<BAAAPPPPEDCB\xb1A>", ((1, -1, 0x1234), 0, 7)),
        (b"<PPPHAAAIKAAA\xc0A>", ((32767, -32768, 10), 15, 7)),
        (b"<AAAAAAAAAAAAUA>", ((0, 0, 0), 4, 1)),
    ],
)
def test_replies_are_read(packet, reply):
    assert wire.decode(packet) == reply
    assert list(wire.PacketReader().feed(packet)) == [reply]


@pytest.mark.parametrize(
    "packet", [b"<AAAAAAAAAAAAA>", b"<AAAAAAAAAAAAAAA>", b"<QAAAAAAAAAAAAA>", b"<@AAAAAAAAAAAAA>", b"AAAAAAAAAAAAAA>"]
)
def test_malformed_replies_are_dropped_and_reported(packet):
    reader, good = wire.PacketReader(), b"<BAAAAAAAAAAAAA>"
    found = list(reader.feed(packet + good + good))
    assert [reply.counts for reply in found if reply is not None] == [(1, 0, 0)] * 2
    assert None in found


def test_replies_in_arbitrary_pieces_and_noise_never_raise():
    rng = np.random.default_rng(0)
    good = b"".join(wire.encode((k, -k, 3 * k), 0) for k in range(50))
    for _ in range(50):
        reader, found, rest = wire.PacketReader(), [], good
        while rest:
            size = int(rng.integers(1, 20))
            found += reader.feed(rest[:size])
            rest = rest[size:]
        assert [reply.counts for reply in found] == [(k, -k, 3 * k) for k in range(50)]
        list(reader.feed(rng.bytes(500)))


# --- USB --------------------------------------------------------------------------------------------------------------


def test_chip_is_set_up_for_the_firmware_with_these_requests():
    unit, seen = falcon(), []
    control = unit.chip.control

    def watch(*request):
        seen.append(request[:4])
        return control(*request)

    unit.chip.control = watch
    line = opened(unit)
    requests = [request[1:3] for request in seen if request[0] == 0x40]
    assert requests == [(9, 1), (6, 0x13E), (3, 2), (4, 8), (2, 0), (0, 1), (0, 2)]
    assert (unit.chip.baud, unit.chip.latency, line.serial) == (1_500_000, 1e-3, "FALCON01")
    line.close()
    assert not unit.owners


def test_missing_libusb_is_told_without_settings_of_other_devices(monkeypatch):
    monkeypatch.setattr("usb.backend.libusb1.get_backend", lambda *_, **__: None)
    monkeypatch.setattr("libusb_package.get_libusb1_backend", lambda *_, **__: None)
    with pytest.raises(DeviceOpenError, match="no libusb was found") as error:
        wire.open_line()
    assert "device." not in str(error.value)


def test_middle_of_an_inclined_plane_is_its_first_point():
    points = [0.0, 0.0, 0.12, 0.05, 0.0, 0.12, 0.0, 0.05, 0.14]
    assert driver.FalconSettings(plane_points=points).origin == (0.0, 0.0, 0.0)
    for origin in ([0.0, 0.0, 0.1], 5):
        with pytest.raises(ConfigurationError, match=r"device\.origin"):
            build(driver.FalconSettings, {"plane_points": points, "origin": origin}, "device")


def test_no_falcon_several_and_an_unknown_one_are_told():
    with pytest.raises(DeviceNotFoundError, match=r"no Falcon is plugged in.*device\.emulated=true"):
        wire.open_line("", EmulatedFalconBackend())
    one, other = falcon(serial="A1"), falcon(serial="B2")
    with pytest.raises(DeviceOpenError, match=r"2 Falcons are plugged in: A1, B2\. Choose one with device\.serial"):
        opened(one, other)
    with pytest.raises(DeviceNotFoundError, match=r"device\.serial = 'C3' is plugged in; there is A1, B2"):
        opened(one, other, serial="C3")
    assert opened(one, other, serial="B2").serial == "B2"


@pytest.mark.parametrize(
    ("fault", "words"),
    [("no-permission", r"Falcon 0403:cb48 is there, but may not be opened \(/dev/bus/usb.*: permission denied\): "
      "haptics doctor udev prints"), ("busy", "held by another program")],
)  # fmt: skip
def test_falcon_that_may_not_be_opened_is_told_in_one_line(fault, words):
    unit = falcon(faults=[f"{fault}@0"])
    unit.bind(0)
    with pytest.raises(DeviceOpenError, match=words) as error:
        opened(unit)
    assert "\n" not in str(error.value)
    assert 0 in unit.drivers, "the kernel's driver has the interface again"


def test_missing_permission_is_told_before_a_serial_number_that_cannot_be_read():
    one, other = (falcon(faults=["no-permission@0"], serial=serial) for serial in ("A1", "B2"))
    for units, serial in (((one,), "A1"), ((one, other), "")):
        with pytest.raises(DeviceOpenError, match="may not be opened"):
            opened(*units, serial=serial)


def test_interface_of_a_kernel_driver_is_taken_and_given_back():
    unit = falcon()
    unit.bind(0)
    line = opened(unit)
    assert 0 not in unit.drivers
    line.close()
    assert 0 in unit.drivers


# --- boot loader and firmware -----------------------------------------------------------------------------------------


def image_file(tmp_path, data):
    file = tmp_path / "firmware.bin"
    file.write_bytes(data)
    return str(file)


@pytest.mark.parametrize("size", [21, 62, 63, 1000])
def test_firmware_is_loaded_and_runs(tmp_path, size):
    unit = falcon("switched on")
    line = opened(unit)
    assert not wire.is_running(line)
    driver.start_firmware(line, image_file(tmp_path, make_image(size)))
    assert unit.processor.state == RUNNING
    assert wire.ask(line, wire.BLUE) is not None
    assert unit.processor.lights == wire.BLUE


def test_boot_loader_gets_these_bytes():
    """The order of the sources: request at 9600 baud, synchronisation and pieces of 62 at 140 000, then 1.5 M."""
    unit, image, seen = falcon("switched on"), make_image(70), []
    receive = unit.processor.receive

    def watch(data, baud, faults):
        seen.append((data, baud))
        return receive(data, baud, faults)

    unit.processor.receive = watch
    wire.load_firmware(opened(unit), image)
    assert seen == [(b"\x0aC\x0d", 9600), (b"A", 140_000), (image[:62], 140_000), (image[62:], 140_000)]
    assert (unit.chip.baud, unit.chip.latency) == (1_500_000, 1e-3)


def test_running_firmware_is_not_loaded_again():
    unit = falcon("loaded")
    driver.start_firmware(opened(unit), "")
    assert unit.processor.state == RUNNING


def test_wrong_firmware_files_are_told(tmp_path):
    unit = falcon("switched on")
    line = opened(unit)
    for file, words in (
        ("", r"no firmware.*device\.firmware=FILE"),
        (str(tmp_path / "none"), "cannot be read: No such file"),
        (str(tmp_path), "cannot be read: Is a directory"),
        (image_file(tmp_path, b""), "has 0 bytes"),
    ):
        with pytest.raises(DeviceOpenError, match=words):
            driver.start_firmware(line, file)
    for data in (b"\x7fELF" * 100, MAGIC + struct.pack("<I", 10_000) + b"truncated"):
        with pytest.raises(DeviceOpenError, match="does not answer: this is no firmware of the Falcon"):
            driver.start_firmware(line, image_file(tmp_path, data))
        unit.processor.restart()
    driver.start_firmware(line, image_file(tmp_path, make_image()))


def test_boot_loader_that_is_silent_or_echoes_wrongly_is_told(tmp_path):
    unit, file = falcon("switched on"), image_file(tmp_path, make_image())
    line = opened(unit)
    unit.processor.restart(DEAD)
    with pytest.raises(DeviceOpenError, match="boot loader does not answer: is the power supply plugged in"):
        driver.start_firmware(line, file)
    unit.processor.restart(BOOT)
    receive, count = unit.processor.receive, [0]

    def spoil(data, baud, faults):
        answer = receive(data, baud, faults)
        count[0] += 1
        return answer[:-1] + b"\xff" if len(answer) == 62 and count[0] % 5 == 0 else answer

    unit.processor.receive = spoil
    with pytest.raises(DeviceOpenError, match=r"another echo at byte .* of 1000"):
        driver.start_firmware(line, file)


def test_unplugging_while_the_firmware_is_loaded_is_told():
    unit = falcon("switched on")
    line = opened(unit)
    receive = unit.processor.receive

    def pull(data, baud, faults):
        if unit.processor.loads > 300:
            unit.unplug()
        return receive(data, baud, faults)

    unit.processor.receive = pull
    with pytest.raises(TransferError, match="the Falcon was unplugged"):
        wire.load_firmware(line, make_image())


# --- homing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_person_homes_the_handle_as_told(seed):
    unit, told = falcon("loaded"), []
    line = opened(unit)
    start = unit.time.now()
    with instructed_by(told.append):
        driver.home(line, PLANE, EXTENT, 20.0)
    assert unit.time.now() - start < 0.6
    assert told[0] == "pull the handle of the Falcon all the way out, then push it all the way in"
    assert unit.mechanism.homed == wire.HOMED
    assert wire.ask(line, wire.BLUE).homed == wire.HOMED
    assert unit.processor.motors == (0, 0, 0)


def test_homed_falcon_asks_for_nothing():
    told = []
    with instructed_by(told.append):
        driver.home(opened(falcon()), PLANE, EXTENT, 1.0)
    assert not told


def test_handle_beside_the_workspace_is_told():
    unit, told = falcon(), []
    beside = Plane(PLANE.axes, PLANE.middle + np.array((0.0, 0.03, 0.0)))
    with instructed_by(told.append), pytest.raises(DeviceOpenError, match=r"not done within device\.patience = 0\.5 s"):
        driver.home(opened(unit), beside, EXTENT, 0.5)
    assert told == ["hold the handle of the Falcon in the middle of its workspace"]


def test_nobody_homes_the_falcon():
    unit = falcon("loaded")
    unit.mechanism.advance = lambda *_: None
    line = opened(unit)
    with pytest.raises(DeviceOpenError, match=r"not done within device\.patience = 2 s: pull the handle"):
        driver.home(line, PLANE, EXTENT, 2.0)
    unit.faults.set("dropout")
    with pytest.raises(DeviceOpenError, match="has stopped answering"):
        driver.home(line, PLANE, EXTENT, 20.0)
    with cancelled_by(lambda: True), pytest.raises(OpeningCancelled):
        driver.home(line, PLANE, EXTENT, 20.0)


# --- exchange ---------------------------------------------------------------------------------------------------------


def conversation(unit, **settings):
    return driver.FalconExchange(opened(unit), driver.FalconSettings(**settings))


def exchange(link, command, count=1):
    """Exchange commands without threads; return the number of samples."""
    answered = 0
    for _ in range(count):
        link.commanded = link.line.now()
        link.exchange(link.line.now(), command)
        latest = link.line.now() + 2.5e-3
        while link.line.now() < latest:
            answered += link.receive(1e-3)
    return answered


def test_motor_numbers_reach_the_firmware_and_counts_the_latch():
    unit = falcon()
    link = conversation(unit)
    before = link.line.now()
    assert exchange(link, (100.4, -200.6, 300.0), 5) == 5
    assert unit.processor.motors == (100, -201, 300)
    assert unit.processor.lights == wire.GREEN
    sent, *counts, buttons = link.samples.read()
    assert before <= sent < link.line.now()
    assert counts == pytest.approx(unit.mechanism.counts, abs=30)
    assert buttons == 0
    assert link.come_to_rest()
    assert unit.processor.motors == (0, 0, 0)
    assert unit.zero_at > 0.0


def test_sample_is_not_younger_than_its_reading():
    """Its time is before the firmware read the encoders, but by less than the flight of a packet."""
    unit = falcon()
    link = conversation(unit)
    read_at = []
    answer = unit.processor._answer
    unit.processor._answer = lambda faults: read_at.append(unit.time.now()) or answer(faults)
    for _ in range(50):
        exchange(link, (10.0, 0.0, 0.0))
        assert 0.0 <= read_at[-1] - link.samples.read()[0] < 1e-3


def test_at_most_two_packets_are_open_but_zero_is_always_sent():
    unit = falcon()
    unit.faults.set("dropout")
    link = conversation(unit)
    for k in range(20):
        link.commanded = link.line.now() + 1e-6 * k
        link.exchange(link.line.now(), (5.0, 0.0, 0.0))
    assert link.counters["packets"] == driver.MOST_OPEN
    link.exchange(link.line.now(), (0.0, 0.0, 0.0))
    assert unit.processor.motors == (0, 0, 0)


def test_replies_to_earlier_packets_do_not_confirm_a_zero_force():
    unit = falcon()
    link = conversation(unit)
    for pause in (3e-4, 0.0):  # the second reply arrives later than the first
        link.commanded = link.line.now()
        link.exchange(link.line.now(), (5.0, 0.0, 0.0))
        unit.time.wait_until(unit.time.now() + pause)
    assert link.counters["packets"] == 2
    unit.processor.receive = lambda *_: b""  # takes no further packet
    assert not link.come_to_rest()
    assert unit.processor.motors == (5, 0, 0)


def test_zero_force_is_confirmed_after_lost_replies():
    unit = falcon()
    link = conversation(unit, reply_timeout=0.02)
    exchange(link, (5.0, 0.0, 0.0), 3)
    unit.faults.set("dropout")
    for k in range(driver.MOST_OPEN):
        link.commanded = link.line.now() + 1e-6 * k
        link.exchange(link.line.now(), (5.0, 0.0, 0.0))
    unit.faults.clear()
    assert link.come_to_rest()
    assert unit.processor.motors == (0, 0, 0)


def test_malformed_replies_do_not_end_a_run():
    unit = falcon()
    link = conversation(unit)
    exchange(link, (5.0, 0.0, 0.0), 3)
    unit.faults.set("malformed")
    assert 8 <= exchange(link, (5.0, 0.0, 0.0), 20) <= 12
    assert link.counters["malformed"] >= 8
    unit.faults.clear()
    assert exchange(link, (5.0, 0.0, 0.0), 5) == 5


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("dropout", r"did not answer within 0\.1 s"),
        ("no-power", r"did not answer within 0\.1 s"),
        ("unplug", "the Falcon was unplugged"),
        ("read-error", "a transfer failed"),
        ("write-error", "a transfer failed"),
        ("stall", "refused a transfer"),
        ("unhomed", "no longer homed"),
    ],
)
def test_fault_ends_the_exchange_with_its_reason(fault, words):
    unit = falcon()
    link = conversation(unit)
    exchange(link, (5.0, 0.0, 0.0), 3)
    unit.faults.set(fault)
    with pytest.raises(Exception, match=words):
        exchange(link, (5.0, 0.0, 0.0), 200)
    if fault in {"dropout", "read-error", "unhomed"}:  # the way out still works
        link.fail_safe(OSError())
        assert unit.processor.motors == (0, 0, 0)


def test_fault_times_begin_with_the_first_force():
    unit = falcon(faults=["dropout@0.1+0.03"])
    link = conversation(unit)
    assert exchange(link, (0.0, 0.0, 0.0), 100) == 100
    begin = unit.time.now()
    counts = [(unit.time.now() - begin, exchange(link, (5.0, 0.0, 0.0))) for _ in range(100)]
    assert all(count for instant, count in counts if instant < 0.095 or instant > 0.14)
    assert not any(count for instant, count in counts if 0.103 < instant < 0.126)


# --- emulated Falcon --------------------------------------------------------------------------------------------------


def test_chip_sends_status_without_data_at_the_latency_timer():
    unit = falcon()
    line = opened(unit)
    start = unit.time.now()
    empty = [line.read(0.1) for _ in range(50)]
    assert empty == [b""] * 50
    assert unit.time.now() - start == pytest.approx(0.05, rel=0.1)


def test_chip_sends_a_reply_at_its_event_character_or_later_without_it():
    unit = falcon()
    line = opened(unit)
    for event, most in ((ord(">"), 0.3e-3), (-1, 1.3e-3)):
        unit.chip.event, longest = event, 0.0
        for k in range(40):
            line.read_until(lambda _: False, 1e-3 + 37e-6 * k)
            start = unit.time.now()
            assert wire.ask(line, wire.BLUE) is not None
            longest = max(longest, unit.time.now() - start)
        assert 0.5 * most < longest < most


def test_force_of_the_motors_is_the_force_that_was_commanded():
    """The emulator derives its force from angles that it computes in another way than the driver."""
    unit = falcon()
    torques = np.empty(3)
    for force in np.vstack((np.eye(3), -np.eye(3), ((1.0, -2.0, 3.0),))):
        place = np.array(unit.mechanism.place)
        assert find_torques(inverse(place), place, force, torques)
        felt = unit.mechanism._force([-10_000.0 * torque for torque in torques])
        np.testing.assert_allclose(felt, force, atol=1e-6)


# --- guardian ---------------------------------------------------------------------------------------------------------


class Port:
    """A port whose interface another process has until it is taken, and that answers a number of packets."""

    def __init__(self, taken, answers=2, gone=False):
        self.taken, self.answers, self.gone, self.log = taken, answers, gone, []

    def claim(self):
        self.log.append("claim")
        if self.taken:
            raise OSError(errno.EBUSY, "busy")

    def disconnect(self):
        self.log.append("disconnect")
        if self.gone:
            raise OSError(errno.ENODEV, "gone")
        self.taken = False

    def write(self, data):
        self.log.append(data)

    def read(self):
        self.answers -= 1
        return b"" if self.answers else b"<AAAAAAAAAAAAAA>"


@pytest.mark.parametrize(("taken", "steps"), [(False, ["claim"]), (True, ["claim", "disconnect", "claim"])])
def test_guardian_takes_the_interface_and_sends_two_zeros(taken, steps):
    port = Port(taken)
    assert guardian.come_to_rest(port, wire.encode((0, 0, 0), wire.RED))
    assert port.log == [*steps, *2 * [b"<AAAAAAAAAAAAIA>"]]


def test_guardian_of_an_unplugged_falcon_fails():
    with pytest.raises(OSError, match="gone"):
        guardian.come_to_rest(Port(taken=True, gone=True), b"")


def test_guardian_imports_the_standard_library_only():
    for module in (guardian, falcon_guardian):
        code = f"import runpy; runpy.run_path({module.__file__!r})"
        assert subprocess.run([sys.executable, "-I", "-S", "-c", code], check=False, timeout=60).returncode == 0
