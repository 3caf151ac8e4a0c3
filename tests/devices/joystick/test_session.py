"""The conversation with a stick, byte by byte: what it takes to play two constant effects, and what may go wrong."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from devices.common.bus.transfers import TransferError
from devices.joystick.families import GENERIC, Family, family_of
from devices.joystick.hid import usages as use
from devices.joystick.hid.descriptor import Field, Report, ReportDescriptor
from devices.joystick.playbook import Playbook
from devices.joystick.session import POLLS, TRIES
from haptics.errors import DeviceOpenError
from tests.devices.joystick.doubles import STICKS, FakeTransport, described, session, stall, timeout, unplugged

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
DISABLE = {"sidewinder-ff2": "0c02", "openffboard": "0c02", "arduino": "0c02"}


@pytest.mark.parametrize("stick", STICKS)
def test_sets_up_in_the_order_and_with_the_bytes_of_the_kernel(stick: str) -> None:
    transport = FakeTransport(stick)
    session(transport, duration=math.inf).start()
    assert transport.sent == STARTS[stick]


@pytest.mark.parametrize("stick", STICKS)
def test_ends_with_zero_stop_free_and_disable(stick: str) -> None:
    transport = FakeTransport(stick)
    playing = session(transport)
    playing.start()
    transport.sent.clear()
    playing.stop()
    assert transport.sent == ["05010000", "05020000", "0a010300", "0a020300", "0b01", "0b02", DISABLE[stick]]


@pytest.mark.parametrize("stick", STICKS)
def test_a_finite_duration_is_in_milliseconds(stick: str) -> None:
    effect = Playbook(described(stick), GENERIC).effect(1, 0.0, 0.2)
    assert effect[3:5] == bytes((200, 0))


@pytest.mark.parametrize(("stick", "full"), [("sidewinder-ff2", 255), ("openffboard", 32767), ("arduino", 10000)])
def test_full_scale_is_the_logical_range(stick: str, full: int) -> None:
    assert Playbook(described(stick), GENERIC).full_scale == full


def test_trigger_that_means_none_belongs_to_the_family() -> None:
    effect = Playbook(described("sidewinder-ff2"), family_of(0x03EB, 0x204E)).effect(1, 0.0, 0.2)
    assert effect[10] == 0xFF


def test_a_spring_the_system_left_behind_is_stopped_by_its_block() -> None:
    transport = FakeTransport("sidewinder-ff2")
    session(transport, family_of(0x045E, 0x001B)).start()
    assert transport.sent[:4] == ["0c04", "0c03", "0a010300", "0c01"]


def test_block_load_is_asked_until_it_has_an_answer() -> None:
    transport = FakeTransport()
    transport.blocks = [(0, 0), (0, 0), (7, 1), (9, 1)]
    playing = session(transport)
    playing.start()
    assert playing.blocks == [7, 9]


def test_status_comes_before_the_block_number_which_may_be_an_old_one() -> None:
    transport = FakeTransport()
    transport.blocks = [(1, 1), (1, 2)]
    with pytest.raises(DeviceOpenError, match=r"no room for another effect.*unplug it"):
        session(transport).start()
    assert transport.sent[-4:] == ["05010000", "0a010300", "0b01", "0c02"], "the first effect was not left behind"


def test_a_block_that_is_in_use_is_no_answer() -> None:
    transport = FakeTransport()
    transport.blocks = [(1, 1), (1, 1), (2, 1)]
    playing = session(transport)
    playing.start()
    assert playing.blocks == [1, 2]


@pytest.mark.parametrize(
    ("blocks", "words"), [([(0, 3)], "refused a constant effect"), ([(0, 0)], f"asked {POLLS} times")]
)
def test_an_effect_that_is_refused_or_never_comes_is_said_so(blocks: list[tuple[int, int]], words: str) -> None:
    transport = FakeTransport()
    transport.blocks = blocks
    with pytest.raises(DeviceOpenError, match=words):
        session(transport).start()
    assert transport.sent[-1] == "0c02"


@pytest.mark.parametrize(
    ("pool", "words"), [(bytes((9, 0, 1, 1)), "1 effects at once"), (bytes((9, 0, 4, 0)), "management of its memory")]
)
def test_a_pool_that_does_not_do_is_refused(pool: bytes, words: str) -> None:
    transport = FakeTransport()
    transport.pool_answers = [pool]
    with pytest.raises(DeviceOpenError, match=words):
        session(transport).start()


def test_a_pool_that_is_not_ready_is_asked_again() -> None:
    transport = FakeTransport()
    transport.pool_answers = [bytes(4), bytes(4), bytes((9, 0, 4, 1))]
    session(transport).start()
    assert transport.sent.count("get 19 5") == 3


def test_a_stick_that_is_busy_with_its_reset_is_waited_for() -> None:
    transport, refusals = FakeTransport(), [TRIES - 1]

    def refuse(report: bytes) -> None:
        if report.hex() == "0c04" and refusals[0]:
            refusals[0] -= 1
            raise timeout()

    transport.before_write = refuse
    session(transport).start()
    assert transport.sent[:2] == ["0c08", "0c04"]


def test_a_stick_that_goes_while_it_is_set_up_is_an_opening_that_failed() -> None:
    transport = FakeTransport()

    def refuse(report: bytes) -> None:
        raise unplugged()

    transport.before_write = refuse
    with pytest.raises(DeviceOpenError, match="unplugged"):
        session(transport).start()


def test_stopping_goes_on_when_a_step_fails() -> None:
    transport = FakeTransport()
    playing = session(transport)
    playing.start()
    transport.sent.clear()

    def refuse(report: bytes) -> None:
        if report.hex() in {"05010000", "0a010300"}:
            raise stall()

    transport.before_write = refuse
    playing.stop()
    assert transport.sent == ["05020000", "0a020300", "0b01", "0b02", "0c02"]


@pytest.mark.parametrize("error", [timeout(), unplugged()])
def test_stopping_ends_with_the_first_report_that_is_not_taken(error: TransferError) -> None:
    transport = FakeTransport()
    playing = session(transport)
    playing.start()
    asked: list[str] = []

    def refuse(report: bytes) -> None:
        asked.append(report.hex())
        if len(asked) > 1:
            raise error

    transport.before_write = refuse
    playing.stop()
    assert asked == ["05010000", "05020000"]
    playing.stop()
    assert asked[2:] == ["0c02"], "the effects were given up, too"


def test_a_stick_that_cannot_play_constant_forces_is_told_by_what_it_lacks() -> None:
    whole = described("openffboard")
    constant = whole.of(whole.reports[0].type.OUTPUT, use.SET_CONSTANT_FORCE)
    without = ReportDescriptor(tuple(report for report in whole.reports if report is not constant), whole.numbered)
    with pytest.raises(DeviceOpenError, match="no report Set Constant Force"):
        Playbook(without, GENERIC)


def changed(stick: str, usage: int, change: Callable[[Field], Field]) -> ReportDescriptor:
    """Return the descriptor of a stick with its output fields that have this usage changed."""
    whole = described(stick)

    def fields(report: Report) -> tuple[Field, ...]:
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
def test_a_stick_that_could_not_be_ended_orderly_is_not_begun_with(usage: int, stick: str) -> None:
    def leave_out(field: Field) -> Field:
        return replace(field, usages=tuple(0 if one == usage else one for one in field.usages))

    without = changed(stick, usage, leave_out)
    with pytest.raises(DeviceOpenError, match=f"it has no command to {MISSING[usage]} \\("):
        Playbook(without, GENERIC)


def test_all_commands_that_are_missing_are_named_at_once() -> None:
    def leave_out(field: Field) -> Field:
        motors = {use.ENABLE_ACTUATORS, use.DISABLE_ACTUATORS}
        return replace(field, usages=tuple(0 if one in motors else one for one in field.usages))

    without = changed("sidewinder-ff2", use.ENABLE_ACTUATORS, leave_out)
    words = r"switch its motors on \(Enable Actuators\), nor to switch its motors off \(Disable Actuators\)\."
    with pytest.raises(DeviceOpenError, match=words):
        Playbook(without, GENERIC)


CONTROLS = (
    use.ENABLE_ACTUATORS,
    use.DISABLE_ACTUATORS,
    use.STOP_ALL_EFFECTS,
    use.DEVICE_RESET,
    use.DEVICE_PAUSE,
    use.DEVICE_CONTINUE,
)


def as_the_kernel(listed: tuple[int, ...], command: int) -> bytes:
    """Return device control as hid-pidff sends it: the place in the list, from 1 on, whatever the logical minimum."""
    return bytes((12, next(place for place, usage in enumerate(listed, 1) if usage == command)))


@pytest.mark.parametrize("stick", ["sidewinder-ff2", "arduino"])
@pytest.mark.parametrize("low", [0, 1])
@pytest.mark.parametrize("order", [CONTROLS, CONTROLS[::-1]])
def test_a_control_list_is_counted_from_one_wherever_its_range_begins(
    stick: str, low: int, order: tuple[int, ...]
) -> None:
    def shifted(field: Field) -> Field:
        return replace(field, usages=order, logical_min=low, logical_max=low + 5)

    book = Playbook(changed(stick, use.DEVICE_RESET, shifted), GENERIC)
    for command in CONTROLS:
        assert book.control(command) == as_the_kernel(order, command)


def test_control_bits_are_bits_wherever_the_range_begins() -> None:
    book = Playbook(changed("openffboard", use.DEVICE_RESET, lambda field: replace(field, logical_min=0)), GENERIC)
    assert [book.control(command)[1] for command in CONTROLS] == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize(("low", "high"), [(0, 255), (0, 0), (-5, 0)])
def test_a_stick_whose_magnitudes_have_no_sign_is_refused_and_not_played_with_zero(low: int, high: int) -> None:
    unsigned = changed("sidewinder-ff2", use.MAGNITUDE, lambda field: replace(field, logical_min=low, logical_max=high))
    with pytest.raises(DeviceOpenError, match=f"its magnitudes, {low} to {high}, have no sign"):
        Playbook(unsigned, GENERIC)


def test_a_block_that_the_stick_itself_cannot_be_told_of_is_an_opening_that_failed() -> None:
    transport = FakeTransport()
    transport.blocks = [(1, 1), (250, 1)]
    with pytest.raises(DeviceOpenError, match="could not be set up"):
        session(transport).start()
    assert transport.sent[-4:] == ["05010000", "0a010300", "0b01", "0c02"], "the first effect is ended all the same"


def test_a_family_that_needs_it_has_its_pause_behind_every_report() -> None:
    family = replace(family_of(0x03EB, 0x2056), load_time=0.0, report_interval=0.005)
    transport = FakeTransport("sidewinder-ff2")
    playing = session(transport, family)
    playing.start()
    playing.stop()
    reports = len(transport.stamps)
    assert reports > 15
    assert np.diff(transport.stamps).min() > 0.9 * family.report_interval
    assert family.out_interval(1e-3) == pytest.approx(6e-3)


def test_time_to_make_room_and_generic_family() -> None:
    assert family_of(0x1234, 0x5678) is GENERIC
    assert isinstance(family_of(0x03EB, 0x2056), Family)
    assert family_of(0x03EB, 0x2056).load_time > 0.0
