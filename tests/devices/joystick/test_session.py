"""Session with a stick: reports of set-up and end, actuators, reattaching, and constant forces."""

import errno
import fcntl
import itertools
import math
import os
import re
import select
import struct
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import usb.core

from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.pid.profiles import PROFILES
from devices.emulators.pid.stick import emulated_stick
from devices.joystick import session as sessions
from devices.joystick.device import playing
from devices.joystick.families import GENERIC, family_of
from devices.joystick.hid import usages as use
from devices.joystick.hid.descriptor import ReportDescriptor, ReportType, actuated_axes, parse_descriptor
from devices.joystick.parameters import build_parameters, format_parameters, write_parameters
from devices.joystick.reports import InputLayout, Playbook
from devices.joystick.streaming import Forces, Streaming, TurnedForces
from devices.joystick.usb import finding, libusb, reattaching
from devices.joystick.usb.libusb import UsbTransport, hid_interfaces, number_of_motors
from devices.joystick.usb.reattaching import prepare
from haptics.errors import ConfigurationError, DeviceOpenError
from haptics.files import parse_toml
from tests.devices.joystick.descriptors import descriptor_of
from tests.devices.joystick.doubles import STICKS, STILL, FakeTransport, described, session, stall, timeout, unplugged
from tests.devices.joystick.in_step import FRAME, BusClock, put_in_step


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """Let the session pause in virtual time only; return its pauses [s]."""
    passed = []
    monkeypatch.setattr(sessions, "time", SimpleNamespace(sleep=passed.append))
    return passed


USAGES = {"x": "0930", "y": "0931", "pointer": "0901a100", "end": "c0"}


def firmware(enable="", largest=1, bits=2, padding=5, ordinals=2, angles=2, size=8):
    """Return the descriptor of a stick.

    The words of `enable` are the items of Axes Enable, which has `bits` fields up to `largest` and `padding`. Direction
    has `ordinals`, and `angles` of `size` bits.
    """
    axes = "".join(USAGES[word] for word in enable.split())
    enabled = f"0955a102 0501 {axes} 1500 25{largest:02x} 7501 95{bits:02x} 9102" + " c0" * (
        1 + enable.count("pointer")
    )
    numbers = "".join(f"0b{number:02x}000a00" for number in range(1, ordinals + 1))
    items = (
        "0501 0904 a101 8501",
        "0501 0930 0931 0932 0933 160180 26ff7f 7510 9504 8102",
        "050f 0921 a102 8501 0922 1501 2528 7508 9501 9102",
        enabled if enable else "",
        f"050f 0956 1500 2501 7501 9501 9102 95{padding:02x} 9103",
        f"0957a102 {numbers} 1500 26ff00 75{size:02x} 95{angles:02x} 9102 c0",
        "c0 c0",
    )
    return bytes.fromhex(" ".join(items))


# Number of actuated axes and descriptor of known sticks.
FIRMWARE = {
    "SideWinder Force Feedback 2": (2, descriptor_of("sidewinder_ff2")),
    "OpenFFBoard, two axes": (2, descriptor_of("openffboard")),
    "OpenFFBoard, one axis": (1, descriptor_of("openffboard_wheel")),
    "Arduino library, X and Y": (2, descriptor_of("arduino")),
    "Arduino library of 2012, one angle": (2, firmware("x y", angles=1)),
    "Arduino wheel, one motor": (1, firmware("x y", bits=1, padding=6, angles=1, size=16)),
    "Arduino wheel, two motors": (2, firmware("x y", angles=1, size=16)),
    "adapter for gameport sticks": (2, firmware("x y")),
    "axes inside a pointer": (2, firmware("pointer x y", padding=1)),
    "wheel with one ordinal": (1, firmware("x", largest=0, bits=1, padding=6, ordinals=1, angles=1, size=16)),
    "wheel without axes enable": (1, firmware(ordinals=1, angles=1, size=16)),
}


# --- conversation -----------------------------------------------------------------------------------------------------


# The order of the kernel's driver (hid-pidff), which every device of the class is tested against by its maker; effects
# last for ever here, and the two directions are 270 and 0 degrees.
STARTS = {
    "sidewinder-ff2": [
        *("0c04", "0c03", "0c01", "0dff", "get 3 5"),
        *("set 01010000", "get 2 5", "05010000", "010101ffff00000000ff0004bf000000"),
        *("set 01010000", "get 2 5", "05020000", "010201ffff00000000ff000400000000"),
        *("0a010101", "0a020101"),
    ],
    "openffboard": [
        *("0c08", "0c04", "0c01", "0dff", "get 19 5"),
        *("set 11010000", "get 18 5", "05010000", "010101ffff000000000000ff00047869000000000000"),
        *("set 11010000", "get 18 5", "05020000", "010201ffff000000000000ff00040000000000000000"),
        *("0a010101", "0a020101"),
    ],
    "arduino": [
        *("0c04", "0c03", "0c01", "0dff", "get 7 5"),
        *("set 05010000", "get 6 5", "05010000", "010101ffff00000000ff0004bf0000000000"),
        *("set 05010000", "get 6 5", "05020000", "010201ffff00000000ff0004000000000000"),
        *("0a010101", "0a020101"),
    ],
}


@pytest.mark.parametrize("stick", STICKS)
def test_start_sends_the_reports_of_the_kernel_driver(stick):
    transport = FakeTransport(stick)
    session(transport, duration=math.inf).start()
    assert transport.sent == STARTS[stick]


def started(stick="openffboard"):
    """Return a transport and its session, which has started; the reports until then are forgotten."""
    transport = FakeTransport(stick)
    playing = session(transport)
    playing.start()
    transport.sent.clear()
    return transport, playing


@pytest.mark.parametrize("stick", STICKS)
def test_stop_sends_zero_stop_free_and_disable(stick):
    transport, playing = started(stick)
    playing.stop()
    assert transport.sent == ["05010000", "05020000", "0a010300", "0a020300", "0b01", "0b02", "0c02"]


@pytest.mark.parametrize(("stick", "full"), [("sidewinder-ff2", 255), ("openffboard", 32767), ("arduino", 10000)])
def test_units_of_duration_and_magnitude(stick, full):
    book = Playbook(described(stick), GENERIC)
    assert book.effect(1, 0.0, 0.2)[3:5] == bytes((200, 0)), "in milliseconds"
    assert book.full_scale == full, "the logical maximum"


def test_start_stops_the_spring_of_the_system():
    transport = FakeTransport("sidewinder-ff2")
    session(transport, family_of("045e:001b")).start()
    assert transport.sent[:4] == ["0c04", "0c03", "0a010300", "0c01"]


@pytest.mark.parametrize(
    ("answers", "blocks"), [([(0, 0), (0, 0), (7, 1), (9, 1)], [7, 9]), ([(1, 1), (1, 1), (2, 1)], [1, 2])]
)
def test_start_repeats_block_load_until_a_new_block_is_ready(answers, blocks):
    transport = FakeTransport()
    transport.blocks = answers
    playing = session(transport)
    playing.start()
    assert playing.blocks == blocks


def refuse_all(report):
    raise unplugged()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("blocks", [(0, 3)], "refused a constant effect"),
        ("blocks", [(0, 0)], f"asked {sessions.POLLS} times"),
        ("pool_answers", [bytes((9, 0, 1, 1))], "1 effects at once"),
        ("pool_answers", [bytes((9, 0, 4, 0))], "management of its memory"),
        ("before_write", refuse_all, "unplugged"),
    ],
)
def test_start_fails_if_the_stick_refuses(name, value, words):
    transport = FakeTransport()
    setattr(transport, name, value)
    with pytest.raises(DeviceOpenError, match=words):
        session(transport).start()
    if name == "blocks":
        assert transport.sent[-1] == "0c02"


@pytest.mark.parametrize(
    ("second", "words"), [((1, 2), r"no room for another effect.*unplug it"), ((250, 1), "could not be set up")]
)
def test_start_without_a_second_block_fails_and_frees_the_first(second, words):
    transport = FakeTransport()
    transport.blocks = [(1, 1), second]
    with pytest.raises(DeviceOpenError, match=words):
        session(transport).start()
    assert transport.sent[-4:] == ["05010000", "0a010300", "0b01", "0c02"], "the first effect was not left behind"


def test_start_repeats_the_pool_request():
    transport = FakeTransport()
    transport.pool_answers = [bytes(4), bytes(4), bytes((9, 0, 4, 1))]
    session(transport).start()
    assert transport.sent.count("get 19 5") == 3


def test_start_waits_for_the_reset_of_the_stick():
    transport, refusals = FakeTransport(), [sessions.TRIES - 1]

    def refuse(report):
        if report.hex() == "0c04" and refusals[0]:
            refusals[0] -= 1
            raise timeout()

    transport.before_write = refuse
    session(transport).start()
    assert transport.sent[:2] == ["0c08", "0c04"]


@pytest.mark.parametrize(("error", "attempts"), [(timeout(), sessions.TRIES), (stall(), 1), (unplugged(), 1)])
def test_start_repeats_a_late_report_only_and_gives_up_in_the_end(error, attempts):
    transport, tried = FakeTransport(), []

    def refuse(report):
        if report.hex() == "0c01":
            tried.append(report)
            raise error

    transport.before_write = refuse
    with pytest.raises(DeviceOpenError, match="the stick could not be set up"):
        session(transport).start()
    assert len(tried) == attempts


def test_stop_continues_after_a_refused_report():
    transport, playing = started()

    def refuse(report):
        if report.hex() in {"05010000", "0a010300"}:
            raise stall()

    transport.before_write = refuse
    playing.stop()
    assert transport.sent == ["05020000", "0a020300", "0b01", "0b02", "0c02"]


@pytest.mark.parametrize("error", [timeout(), unplugged()])
def test_stop_ends_at_the_first_lost_report(error):
    transport, playing = started()
    asked = []

    def refuse(report):
        asked.append(report.hex())
        if len(asked) > 1:
            raise error

    transport.before_write = refuse
    playing.stop()
    assert asked == ["05010000", "05020000"]
    playing.stop()
    assert asked[2:] == ["0c02"], "the effects were given up, too"


def test_missing_report_is_named():
    whole = described("openffboard")
    constant = whole.of(whole.reports[0].type.OUTPUT, use.SET_CONSTANT_FORCE)
    without = ReportDescriptor(tuple(report for report in whole.reports if report is not constant), whole.numbered)
    with pytest.raises(DeviceOpenError, match="no report Set Constant Force"):
        Playbook(without, GENERIC)


def changed(stick, usage, change):
    """Return the descriptor of a stick with its output fields that have this usage changed."""
    whole = described(stick)

    def fields(report):
        return tuple(change(f) if usage in f.usages and report.type == "output" else f for f in report.fields)

    return ReportDescriptor(tuple(replace(report, fields=fields(report)) for report in whole.reports), whole.numbered)


MISSING = {
    use.DEVICE_RESET: "reset it",
    use.STOP_ALL_EFFECTS: "stop all effects",
    use.ENABLE_ACTUATORS: "switch its motors on",
    use.DISABLE_ACTUATORS: "switch its motors off",
    use.START: "start an effect",
    use.STOP: "stop an effect",
}


@pytest.mark.parametrize("stick", STICKS)
@pytest.mark.parametrize("usage", MISSING)
def test_missing_control_command_is_named(usage, stick):
    def leave_out(field):
        return replace(field, usages=tuple(0 if one == usage else one for one in field.usages))

    without = changed(stick, usage, leave_out)
    with pytest.raises(DeviceOpenError, match=f"it has no command to {MISSING[usage]} \\("):
        Playbook(without, GENERIC)


CONTROLS = (
    use.ENABLE_ACTUATORS,
    use.DISABLE_ACTUATORS,
    use.STOP_ALL_EFFECTS,
    use.DEVICE_RESET,
    use.DEVICE_PAUSE,
    use.DEVICE_CONTINUE,
)


@pytest.mark.parametrize("stick", ["sidewinder-ff2", "arduino"])
@pytest.mark.parametrize("low", [0, 1])
@pytest.mark.parametrize("order", [CONTROLS, CONTROLS[::-1]])
def test_control_list_is_counted_from_one(stick, low, order):
    def shifted(field):
        return replace(field, usages=order, logical_min=low, logical_max=low + 5)

    book = Playbook(changed(stick, use.DEVICE_RESET, shifted), GENERIC)
    for place, command in enumerate(order, 1):  # as hid-pidff sends it
        assert book.control(command) == bytes((12, place))


def test_control_bits_ignore_the_logical_minimum():
    book = Playbook(changed("openffboard", use.DEVICE_RESET, lambda field: replace(field, logical_min=0)), GENERIC)
    assert [book.control(command)[1] for command in CONTROLS] == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize(("low", "high"), [(0, 255), (0, 0), (-5, 0)])
def test_unsigned_magnitudes_are_rejected(low, high):
    unsigned = changed("sidewinder-ff2", use.MAGNITUDE, lambda field: replace(field, logical_min=low, logical_max=high))
    with pytest.raises(DeviceOpenError, match=f"its magnitudes, {low} to {high}, have no sign"):
        Playbook(unsigned, GENERIC)


def test_family_pause_follows_every_report(pauses):
    family = replace(family_of("03eb:2056"), load_time=0.0, report_interval=0.005)
    transport = FakeTransport("sidewinder-ff2")
    reports = []
    transport.before_write = lambda report: reports.append((report, len(pauses)))
    playing = session(transport, family)
    playing.start()
    playing.stop()
    assert len(reports) > 15
    assert [earlier for _, earlier in reports] == list(range(len(reports)))
    assert pauses == [family.report_interval] * len(reports)
    assert family.out_interval(1e-3) == pytest.approx(6e-3)


def test_family_follows_the_device_number_and_decides_on_the_trigger():
    assert family_of("1234:5678") is GENERIC
    effect = Playbook(described("sidewinder-ff2"), family_of("03eb:204e")).effect(1, 0.0, 0.2)
    assert effect[10] == 0xFF
    assert family_of("03eb:2056").load_time > 0.0


# --- actuated axes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIRMWARE)
def test_actuated_axes_are_counted(name):
    motors, descriptor = FIRMWARE[name]
    parsed = parse_descriptor(descriptor)
    assert actuated_axes(parsed) == (use.X, use.Y)[:motors]
    assert number_of_motors(descriptor) == motors
    (position,) = (r for r in parsed.reports if r.type is ReportType.INPUT and r.field(use.X) is not None)
    assert position.field(use.Y) is not None, "all of them measure two axes and more"


def test_descriptor_without_effects_or_with_constant_fields_has_no_actuated_axes():
    whole = parse_descriptor(firmware("x y", angles=1, size=16))
    inputs = tuple(report for report in whole.reports if report.type is ReportType.INPUT)
    assert actuated_axes(ReportDescriptor(inputs, whole.numbered)) == ()
    constant = tuple(
        replace(report, fields=tuple(replace(f, constant=True) for f in report.fields)) for report in whole.reports
    )
    assert actuated_axes(ReportDescriptor(constant, whole.numbered)) == ()
    assert number_of_motors(b"\x05") is None


def test_wheel_is_rejected_as_a_stick_without_sending():
    transport = FakeTransport("openffboard")
    _, wheel = FIRMWARE["OpenFFBoard, one axis"]
    transport.link = replace(transport.link, descriptor=wheel)
    assert wheel != PROFILES["openffboard"].report_descriptor
    with pytest.raises(DeviceOpenError, match="is a wheel: one axis with a motor"), playing(transport, 0.2, 0.05):
        pytest.fail("it was taken")
    assert transport.sent == []


# --- reattaching ------------------------------------------------------------------------------------------------------


INTERFACE = 2


@pytest.fixture
def attach(tmp_path, monkeypatch):
    """Reattach the kernel's driver in virtual time to a system with these results of ioctl; return its calls.

    A result is None for success, else an error number; the last one repeats.
    """

    def run(*answers):
        left, calls, now = list(answers), [], [0.0]

        def ioctl(file, request, data):
            calls.append((request, struct.unpack("@iiP", data)))
            answer = left.pop(0) if len(left) > 1 else left[0]
            if answer is not None:
                raise OSError(answer, os.strerror(answer))
            return 0

        def sleep(pause):
            now[0] += pause

        monkeypatch.setattr(fcntl, "ioctl", ioctl)
        monkeypatch.setattr(reattaching, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
        (tmp_path / "node").touch()
        act = prepare([str(tmp_path / "node"), str(INTERFACE)])
        if answers[-1] is None:
            assert act() == 0
        else:
            with pytest.raises(OSError, match=re.escape(os.strerror(answers[-1]))):
                act()
        return calls, now[0]

    return run


def test_reattach_uses_the_kernel_ioctl(attach):
    calls, _ = attach(None)
    assert calls == [(0xC0105512, (INTERFACE, 0x5517, 0))]  # USBDEVFS_IOCTL on 64 bits, USBDEVFS_CONNECT


def test_reattach_waits_for_a_busy_interface_only(attach):
    assert len(attach(errno.EBUSY, errno.EBUSY, None)[0]) == 3
    assert attach(errno.EBUSY)[1] == pytest.approx(reattaching.PATIENCE, abs=2.0 * reattaching.PAUSE)
    assert len(attach(errno.ENODEV)[0]) == 1


# --- forces of two effects --------------------------------------------------------------------------------------------


KEEP_ALIVE = 0.04


def reports_of(forces, taken=True):
    """Yield all reports that are due now; `taken` tells the forces whether each was transferred."""
    reports = forces.reports()
    report = next(reports, None)
    while report is not None:
        yield report
        try:
            report = reports.send(taken)
        except StopIteration:
            return


class Stick:
    """The forces of a stick that accepts every report."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr("devices.joystick.streaming.time", SimpleNamespace(perf_counter=lambda: self.now))
        self.forces = Forces(Playbook(described("openffboard"), GENERIC), [1, 2], KEEP_ALIVE)

    def command(self, level_x, level_y):
        self.forces.levels.publish(level_x, level_y, self.now)

    def sent(self, kind=""):
        """Return the sent reports, those that start with `kind`."""
        return [report.hex() for report in reports_of(self.forces) if report.hex().startswith(kind)]


@pytest.fixture
def stick(monkeypatch):
    return Stick(monkeypatch)


@pytest.mark.parametrize(("old", "goes"), [(0.0, False), (0.039, False), (0.041, True), (0.1, True)])
def test_stale_command_is_replaced_by_zero(stick, old, goes):
    stick.command(0.5, -0.25)
    assert stick.sent("05") == ["05010040", "050200e0"]
    stick.now += old
    assert stick.sent("05") == (["05010000", "05020000"] if goes else [])
    assert stick.forces.on != goes


@pytest.mark.parametrize(("old", "wakes_within"), [(0.0, 0.04), (0.03, 0.04), (0.041, 0.02)])
def test_idle_time_ends_before_a_command_is_stale(stick, old, wakes_within):
    stick.command(0.5, 0.0)
    stick.sent()
    stick.now += old
    assert stick.forces.idle() <= wakes_within + 1e-9


def test_effects_are_restarted_only_while_commands_arrive(stick):
    starts = []
    for tick in range(400):
        stick.now += 1e-3
        if tick < 200:
            stick.command(0.5, 0.5)
        starts += [(tick, text[2:4]) for text in stick.sent("0a")]
    for block in ("01", "02"):
        ticks = [tick for tick, text in starts if text == block]
        assert max(b - a for a, b in itertools.pairwise(ticks)) <= 41
        assert max(ticks) < 240


# --- force of one turned effect ---------------------------------------------------------------------------------------


FROM_LEFT = 1.5 * math.pi


class TurnedStick:
    """Level of a stick under turned forces, decoded by the tables of the emulator, with a test clock."""

    def __init__(self, monkeypatch, profile="openffboard"):
        self.now, self.profile = 100.0, PROFILES[profile]
        monkeypatch.setattr("devices.joystick.streaming.time", SimpleNamespace(perf_counter=lambda: self.now))
        book = Playbook(described(profile), GENERIC)
        self.forces = TurnedForces(book, 1, 0.04, book.effect(1, FROM_LEFT, 0.2))
        self.direction, self.magnitude = self.profile.direction({"axes": 4, **self._angle(FROM_LEFT)}), 0.0
        self.starts = self.reports = 0

    def _angle(self, radians):
        return {"direction": round(radians / math.tau * self.profile.circle), "direction_y": 0}

    def command(self, x, y):
        self.forces.levels.publish(x, y, self.now)

    @property
    def level(self):
        return self.magnitude * np.array(self.direction) * self.profile.sense

    def send(self, taken=True):
        """Send all reports; return the levels after each."""
        seen = []
        for report in reports_of(self.forces, taken):
            if taken:
                self._take(report)
            seen.append(self.level)
        return seen

    def _take(self, report):
        layout = self.profile.outputs[report[0]]
        fields = layout.unpack(report)
        self.reports += 1
        if layout.kind == "constant":
            self.magnitude = fields["magnitude"] / self.profile.full_scale
        elif layout.kind == "set-effect":
            assert (fields["axes"], fields["type"], fields["duration"]) == (4, 1, 200)
            self.direction = self.profile.direction(fields)
        else:
            self.starts += 1


def direction(degrees):
    return np.array((math.cos(math.radians(degrees)), math.sin(math.radians(degrees))))


@pytest.fixture(params=STICKS)
def stick_turned(request, monkeypatch):
    return TurnedStick(monkeypatch, request.param)


def test_turned_force_has_size_and_direction(stick_turned):
    grain = math.tau / stick_turned.profile.circle
    for size, degrees in itertools.product((0.05, 0.5, 1.0), range(0, 360, 7)):
        wanted = size * direction(degrees)
        stick_turned.command(*wanted)
        stick_turned.send()
        assert np.hypot(*(stick_turned.level - wanted)) < size * grain + 1.0 / stick_turned.forces._full_scale


def test_reversed_force_stays_on_its_line(stick_turned):
    stick_turned.send()
    way = np.array((0.6, 0.8))
    stick_turned.command(*way)
    stick_turned.send()
    for part in (0.5, 0.1, -0.1, -0.5, -1.0, 1.0):
        stick_turned.command(*(part * way))
        between = stick_turned.send()
        assert all(abs(x * way[1] - y * way[0]) < 0.02 for x, y in between), "along the same line"
        np.testing.assert_allclose(stick_turned.level, part * way, atol=0.03)


def test_intermediate_level_is_bounded(stick_turned):
    stick_turned.command(0.5, 0.0)
    stick_turned.send()
    before = stick_turned.level
    for degrees in (30, 80, 100, 200, 330, 150, 10):
        wanted = 0.5 * direction(degrees)
        stick_turned.command(*wanted)
        between = stick_turned.send()
        allowed = np.hypot(*(wanted - before)) + 0.02
        assert all(np.hypot(*(level - wanted)) <= allowed for level in between)
        before = stick_turned.level


def test_zero_force_keeps_the_effect_alive_without_directions(stick_turned):
    stick_turned.command(0.5, 0.5)
    stick_turned.send()
    sent = stick_turned.reports
    for _ in range(200):
        stick_turned.now += 1e-3
        stick_turned.command(0.0, 0.0)
        stick_turned.send()
    assert not stick_turned.forces.on
    assert stick_turned.reports - sent - 1 == pytest.approx(stick_turned.starts, abs=1)
    assert 4 <= stick_turned.starts <= 7


def test_lost_report_is_sent_again_and_a_stale_command_replaced_by_zero(stick_turned):
    stick_turned.command(0.3, -0.4)
    stick_turned.send(taken=False)
    assert stick_turned.forces.on and stick_turned.forces.idle() == 0.0
    stick_turned.send()
    np.testing.assert_allclose(stick_turned.level, (0.3, -0.4), atol=0.02)
    stick_turned.now += 0.041
    stick_turned.send()
    assert stick_turned.magnitude == 0.0


def test_turned_forces_use_one_effect():
    transport = FakeTransport()
    transport.pool_answers = [bytes((9, 0, 1, 1))]
    session(transport, count=1).start()
    assert sum(text.startswith("set") for text in transport.sent) == 1


# --- the whole driver ------------------------------------------------------------------------------------------------


def forces(sums, effects, tmp_path, monkeypatch):
    """Return a stick with this way of making a sum, and pairs of wanted and true force around the circle [N]."""
    monkeypatch.setitem(PROFILES, sums, replace(PROFILES["openffboard"], sums=sums))
    backend = emulated_stick(sums, hand=STILL, period=0.0)
    (stick_turned,) = backend.units
    sleep = put_in_step(stick_turned.time, monkeypatch)
    known = build_parameters(stick_turned.truths)
    file = tmp_path / "stick.toml"
    write_parameters(file, replace(known, force=replace(known.force, effects=effects)))
    settings = {"emulated": True, "emulator": stick_turned.profile.name, "parameters": str(file), "hand": STILL}
    seen = []
    with EmulatedPidJoystick(settings, clock=BusClock(FRAME, stick_turned.time), backend=backend) as device:
        for degrees in range(20, 380, 40):
            wanted = 3.0 * direction(degrees)
            for _ in range(8):
                device.read()
                device.write(wanted)
                sleep(FRAME)
            seen.append((wanted, stick_turned.force))
    return stick_turned, seen


@pytest.mark.parametrize("sums", ["adds", "latest", "turns"])
@pytest.mark.parametrize("effects", [1, 2])
def test_firmware_without_addition_needs_one_effect(sums, effects, tmp_path, monkeypatch):
    stick_turned, seen = forces(sums, effects, tmp_path, monkeypatch)
    off = max(float(np.hypot(*(had - wanted))) for wanted, had in seen)
    assert (off < 0.05) == (effects == 1 or sums == "adds")
    assert len(stick_turned.received("create")) == effects
    assert not stick_turned.force.any()


def test_largest_force_of_one_effect_is_checked():
    known = build_parameters(PROFILES["openffboard"].truths())
    assert build_parameters(parse_toml(format_parameters(known), "f"), "f") == known
    one = replace(known.force, newton_to_level=((0.1, 0.0), (0.0, 0.1)), max_force_n=10.0, effects=1)
    assert replace(known, force=one).force.max_force_n == 10.0
    skew = replace(one, newton_to_level=((0.1, 0.08), (0.08, 0.1)), max_force_n=7.0)
    assert replace(known, force=replace(skew, effects=2))
    with pytest.raises(ConfigurationError, match=r"force\.max_force_n = 7: .* must be at most 5\.5"):
        replace(known, force=skew)
    before = format_parameters(known).replace("effects = 2\n", "")
    assert build_parameters(parse_toml(before, "f"), "f") == known


# --- connection -------------------------------------------------------------------------------------------------------


def test_emulated_sticks_are_listed_without_looking_at_the_machine(monkeypatch):
    monkeypatch.setattr(finding.hidraw, "hidraw_nodes", lambda root: pytest.fail(f"it looks at {root}"))
    (stick,) = finding.usb_sticks(emulated_stick("openffboard", hand=STILL), Path("/"))
    assert stick.speaks_pid


class NotedGuard:
    """A guardian without a process."""

    def __init__(self, *_):
        self.calls = []

    def dismiss(self):
        self.calls.append("dismissed")

    def hand_over(self, patience):
        self.calls.append("reattaches the driver")


@pytest.mark.parametrize("taken", [True, False])
def test_guardian_reattaches_the_driver_of_an_interface_that_was_taken_only(taken, monkeypatch):
    guards = []
    monkeypatch.setattr(libusb, "Guard", lambda *_: guards.append(NotedGuard()) or guards[-1])
    monkeypatch.setattr(libusb.hidraw, "node_of_interface", lambda *_: None)
    faults = () if taken else ("busy@0",)
    backend = emulated_stick("openffboard", hand=STILL, faults=faults)
    if not taken:
        backend.units[0].drivers.clear()  # another program has the interface
    device = usb.core.find(backend=backend)
    interface = next(hid_interfaces(device))
    if taken:
        UsbTransport(device, interface, real=True).close()
    else:
        with pytest.raises(OSError, match="busy"):
            UsbTransport(device, interface, real=True)
    assert [guard.calls for guard in guards] == [["reattaches the driver" if taken else "dismissed"]]


def test_stop_wakes_the_writer():
    transport, playing = started()
    stream = Streaming(transport, playing, InputLayout(described("openffboard"), use.X, use.Y), 0.05)
    stream.stop()
    assert select.select([stream.wake.descriptor], [], [], 0.0)[0]
