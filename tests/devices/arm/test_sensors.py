"""Force sensors: mounting, records of the ATI raw data transfer, frames of OptoForce sensors."""

import itertools
import math
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.arm.sensors.force_sensor import Health, Mounting, SensorSettings, turn
from devices.arm.sensors.optoforce import Acknowledgement, Decoder, Frame, configuration
from devices.arm.sensors.optoforce import status_words as status_words_frames
from devices.arm.sensors.rdt import AXIA, LATCHED, NET_FT, RECORD, RESTARTED, Records, health_of, status_words
from haptics.errors import ConfigurationError

numbers = st.floats(-20.0, 20.0)
triples = st.tuples(numbers, numbers, numbers)
angles = st.floats(-180.0, 180.0)
orientations = st.builds(
    lambda x, y, z: turn(2, math.radians(z)) @ turn(0, math.radians(x)) @ turn(1, math.radians(y)),
    angles, angles, angles,
)  # fmt: skip
sensor_settings = st.builds(
    SensorSettings,
    rotation=st.tuples(angles, angles, angles),
    handle_mass=st.floats(0.0, 5.0),
    handle_centre=st.tuples(*[st.floats(-0.2, 0.2)] * 3),
    gravity=triples,
)


def in_sensor_axes(own, orientation, offset, force, torque):
    """What a sensor would show: everything computed in the world's axes, then seen along its own."""
    x, y, z = (turn(axis, math.radians(angle)) for axis, angle in enumerate(own.rotation))
    axes = orientation @ z @ y @ x
    weight = own.handle_mass * np.array(own.gravity)
    centre = axes @ np.array(own.handle_centre)
    total = np.concatenate([axes.T @ (force + weight), axes.T @ (torque + np.cross(centre, weight))])
    return total + offset


@given(own=sensor_settings, orientation=orientations, force=triples, torque=triples)
def test_mounting_removes_the_weight_of_the_handle(own, orientation, force, torque):
    measured = in_sensor_axes(own, orientation, 0.0, np.array(force), np.array(torque))
    np.testing.assert_allclose(Mounting(own).hand(measured, orientation), [*force, *torque], atol=1e-9)


@given(own=sensor_settings, at_tare=orientations, later=orientations, force=triples, offset=st.tuples(triples, triples))
def test_tare_holds_in_every_pose(own, at_tare, later, force, offset):
    offset = np.concatenate(offset)
    mounting = Mounting(own)
    mounting.tare(in_sensor_axes(own, at_tare, offset, np.zeros(3), np.zeros(3)), at_tare)
    measured = in_sensor_axes(own, later, offset, np.array(force), np.zeros(3))
    np.testing.assert_allclose(mounting.hand(measured, later), [*force, 0.0, 0.0, 0.0], atol=1e-9)


def test_turn_is_anticlockwise():
    np.testing.assert_allclose(turn(2, math.pi / 2) @ [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(turn(0, math.pi / 2) @ [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], atol=1e-15)


def test_mounting_defaults_to_the_world_orientation():
    mounting = Mounting(SensorSettings(rotation=(0.0, 0.0, 90.0), handle_mass=0.0))
    np.testing.assert_allclose(mounting.hand([2.0, 0, 0, 0, 0, 1.0]), [0, 2.0, 0, 0, 0, 1.0], atol=1e-15)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rotation": (1.0, 2.0)}, "device.sensor.rotation = (1.0, 2.0): must be three finite numbers."),
        ({"gravity": "down"}, "device.sensor.gravity = 'down': must be three finite numbers."),
        ({"handle_centre": (0.0, math.nan, 0.0)}, "device.sensor.handle_centre"),
        ({"handle_mass": -1.0}, "device.sensor.handle_mass = -1.0: must be a finite number at least 0 kg"),
        ({"tare_samples": 20.5}, "tare_samples = 20.5: must be a whole number at least 10 and at most 10000."),
    ],
)
def test_invalid_settings_are_rejected(wrong, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        SensorSettings(**wrong)


# --- records of the ATI raw data transfer -----------------------------------------------------------------------------


EXAMPLE = "ffffffff 80000000 80020000 ffffffff 00000002 fffffffd 00000004 fffffffb 00000006"
WRAP = 1 << 32
starts = st.integers(0, WRAP - 1)


def record(number, status=0, counts=(0,) * 6):
    return struct.pack(">3I6i", number % WRAP, number % WRAP, status, *counts)


def test_published_record_is_parsed():
    data = bytes.fromhex(EXAMPLE)
    assert len(data) == RECORD.size == 36
    records = Records()
    records.add(data)
    assert records.collect() == (0xFFFFFFFF, 0x80000000, 0x80020000, (-1, 2, -3, 4, -5, 6))


def taken(records, *datagrams):
    for datagram in datagrams:
        records.add(datagram)
    return records.collect()


@given(
    start=starts,
    steps=st.lists(st.integers(0, 5), min_size=1, max_size=60),
    jitter=st.lists(st.integers(0, 4), min_size=60, max_size=60),
)
def test_records_are_increasing_and_losses_are_counted(start, steps, jitter):
    """Numbers grow by 0 (a duplicate), 1 or more (a loss) and change places with their neighbours."""
    offsets = list(itertools.accumulate(steps))
    order = sorted(range(len(offsets)), key=lambda k: k + jitter[k])
    sent = [offsets[k] for k in order]
    records, kept = Records(), []
    for offset in sent:
        got = taken(records, record(start + offset))
        if got is not None:
            kept.append((got.number - start - sent[0]) % WRAP)
    assert kept == sorted(set(kept))
    assert kept[0] == 0
    assert kept[-1] == max(sent) - sent[0]
    tally = records.tally
    assert tally["received"] == len(kept)
    assert tally["received"] + tally["duplicated"] + tally["late"] == len(sent)
    assert tally["received"] + tally["lost"] == kept[-1] + 1
    assert tally["restarted"] == tally["malformed"] == 0


@given(start=starts, sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_datagram_with_several_records_is_read(start, sizes):
    records, number = Records(), start
    for size in sizes:
        got = taken(records, b"".join(record(number + k) for k in range(size)))
        number += size
        assert got.number == (number - 1) % WRAP
    assert records.tally["received"] == sum(sizes)
    assert records.tally["lost"] == 0


def test_newest_record_is_kept_with_the_status_of_all():
    got = taken(Records(), record(1), record(2, 0x80020000), record(4, 0, (1, 2, 3, 4, 5, 6)), record(3, 0x4))
    assert got == (4, 4, 0x80020000, (1, 2, 3, 4, 5, 6))  # the late one says nothing


def test_status_is_reported_once():
    records = Records()
    assert taken(records, record(1, 0x80020000)).status == 0x80020000
    assert taken(records, record(2)).status == 0


@given(data=st.binary(max_size=120).filter(lambda data: len(data) % 36 or not data))
def test_malformed_datagrams_are_counted(data):
    records = Records()
    assert taken(records, data) is None
    assert records.tally["malformed"] == 1


def test_restarted_stream_is_detected():
    records = Records()
    taken(records, record(5000))
    got = [taken(records, record(number)) for number in range(1, 2 * RESTARTED)]
    assert [one.number for one in got if one is not None] == list(range(RESTARTED, 2 * RESTARTED))
    assert records.tally["restarted"] == 1


def test_late_records_are_not_a_restart():
    records = Records()
    for number in range(100, 100 + 4 * RESTARTED, 2):
        taken(records, record(number + 1), record(number))
    assert records.tally["late"] == 2 * RESTARTED
    assert records.tally["restarted"] == 0


def test_announced_restart_loses_no_record():
    records = Records()
    taken(records, record(5000))
    records.reset()
    assert taken(records, record(1)).number == 1
    assert records.tally["late"] == records.tally["lost"] == 0


# --- status ----------------------------------------------------------------------------------------------------------


def test_latched_condition_is_a_warning():
    assert health_of(0) is Health.OK
    assert health_of(LATCHED) is Health.WARNING
    assert "a monitored condition was met" in status_words(LATCHED, NET_FT)


@given(
    status=st.integers(1, WRAP - 1).filter(lambda status: status != LATCHED), meanings=st.sampled_from([NET_FT, AXIA])
)
def test_every_other_status_is_a_fault(status, meanings):
    assert health_of(status) is Health.FAULT
    words = status_words(status, meanings)
    assert f"{status:#010x}" in words
    for bit, meaning in meanings.items():
        assert (meaning in words) == bool(status >> bit & 1)


def test_unknown_status_bits_are_numbered():
    assert "unknown status bit 15" in status_words(0x80008000, NET_FT)
    assert "an error it does not name" in status_words(0x80000000, NET_FT)
    assert status_words(0, NET_FT) == ""


@pytest.mark.parametrize(("meanings", "status"), [(NET_FT, 0x80020000), (AXIA, 0x88000000), (AXIA, 0xC0000000)])
def test_overload_status_names_its_remedy(meanings, status):
    assert "take the load away" in status_words(status, meanings)


# --- frames of OptoForce sensors --------------------------------------------------------------------------------------


CAPTURE = Path(__file__).resolve().parents[4] / "shared" / "data" / "optoforce" / "omd45_capture.bin"
EXAMPLE_FRAMES = bytes.fromhex("aa07080a 2d6a 0000 fff7 fffb 0007 0551")
# The recording ends with an incomplete frame.
CUT = bytes.fromhex("aa07080a b3b0 0000 ff270a")
ANSWER = bytes.fromhex("aa0050010000fb")
HEADERS = [bytes.fromhex(text) for text in ("aa07080a", "aa070810", "aa07081c", "aa005001", "aa07", "aa")]

counts = st.integers(-32768, 32767)
shorts = st.integers(0, 65535)
frames = st.builds(
    Frame, shorts, shorts, st.sampled_from([3, 6, 12]).flatmap(lambda n: st.tuples(*[counts] * n))
)  # fmt: skip
# Counts with the bytes of headers: AA07, 080A, 0810, AA07 ...
tricky = st.sampled_from([-21753, 2058, 2064, -22009, 1800, -21936])
tricky_frames = st.builds(Frame, shorts, shorts, st.tuples(*[tricky] * 6) | st.tuples(*[tricky] * 3))


def encode(frame):
    body = bytes((0xAA, 7, 8, 4 + 2 * len(frame.counts)))
    body += struct.pack(f">HH{len(frame.counts)}h", frame.number, frame.status, *frame.counts)
    return body + (sum(body) % 65536).to_bytes(2, "big")


def decoded(data, cuts=()):
    decoder = Decoder()
    found = []
    for start, end in itertools.pairwise([0, *sorted(cuts), len(data)]):
        found += decoder.feed(data[start:end])
    return found, decoder.tally


@pytest.mark.skipif(not CAPTURE.exists(), reason="the recording omd45_capture.bin is not here")
def test_decoder_finds_every_valid_frame_of_a_real_recording():
    capture = CAPTURE.read_bytes()
    found, tally = decoded(capture)
    assert found[0] == Acknowledgement(0)
    assert found[1] == Frame(11626, 0, (-9, -5, 7))
    good = found[1:]
    assert all(isinstance(frame, Frame) and len(frame.counts) == 3 for frame in good)
    assert len(good) == tally["received"] == 34_320
    # none invented: each is in the recording, one after the other
    position = 0
    for frame in good:
        position = capture.index(encode(frame), position) + 16
    assert capture.endswith(CUT)
    assert tally["skipped"] == len(capture) - len(CUT) - 7 - 16 * 34_320
    steps = [(later.number - former.number) % 65536 for former, later in itertools.pairwise(good)]
    assert tally["gaps"] == sum(step != 1 for step in steps) == 54
    assert tally["lost"] == sum(step - 1 for step in steps) == 54
    assert tally["duplicated"] == tally["restarted"] == 0


# --- examples --------------------------------------------------------------------------------------------------------


def test_decoder_reads_the_published_frame():
    assert decoded(EXAMPLE_FRAMES)[0] == [Frame(11626, 0, (-9, -5, 7))]
    assert encode(Frame(11626, 0, (-9, -5, 7))) == EXAMPLE_FRAMES


def test_decoder_reads_the_published_acknowledgement():
    assert decoded(ANSWER)[0] == [Acknowledgement(0)]
    assert decoded(ANSWER[:4] + b"\x02\x00\xfd")[0] == [Acknowledgement(2)]


def test_configuration_message_has_a_checksum():
    message = configuration(1, 4, 255)
    assert message[:7] == bytes.fromhex("aa 00 32 03 01 04 ff")
    assert message[7:] == sum(message[:7]).to_bytes(2, "big")


# --- cut, mixed, damaged ---------------------------------------------------------------------------------------------

# Longer than any frame: every apparent frame start ends in it.
PADDING = bytes(40)


@given(
    parts=st.lists(st.tuples(st.binary(max_size=20) | st.sampled_from(HEADERS), frames | tricky_frames), max_size=8),
    cuts=st.lists(st.integers(0, 500), max_size=30),
)
def test_decoder_finds_frames_between_arbitrary_bytes(parts, cuts):
    data = b"".join(junk + encode(frame) for junk, frame in parts) + PADDING
    found, tally = decoded(data, [cut for cut in cuts if cut < len(data)])
    assert [frame for _, frame in parts] == [frame for frame in found if isinstance(frame, Frame)]
    assert tally["received"] == len(parts)


@given(data=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300), max_size=20))
def test_decoder_result_for_noise_is_independent_of_chunks(data, cuts):
    assert decoded(data, [cut for cut in cuts if cut < len(data)]) == decoded(data)


@given(before=frames, after=frames, frame=frames, data=st.data())
@pytest.mark.parametrize("damage", ["one bit", "cut"])
def test_decoder_rejects_a_damaged_frame(damage, before, after, frame, data):
    """One bit wrong, wherever: sums of 16 bits see that."""
    wrong = bytearray(encode(frame))
    place = data.draw(st.integers(0, len(wrong) - 1))
    if damage == "cut":
        del wrong[place:]
    else:
        wrong[place] ^= 1 << data.draw(st.integers(0, 7))
    found, _ = decoded(encode(before) + bytes(wrong) + encode(after) + PADDING)
    assert found == [before, after]


def test_decoder_does_not_split_a_frame_that_contains_another():
    inner = encode(Frame(2, 0, (1, 2, 3)))
    outer = Frame(1, 0, (*struct.unpack(">8h", inner), 0, 0, 0, 0))
    assert decoded(encode(outer))[0] == [outer]


@given(start=shorts, steps=st.lists(st.integers(0, 400), max_size=50))
def test_decoder_counts_missing_numbers(start, steps):
    numbers = list(itertools.accumulate(steps, initial=start))
    _, tally = decoded(b"".join(encode(Frame(number % 65536, 0, (0, 0, 0))) for number in numbers))
    assert tally["received"] == len(numbers)
    assert tally["duplicated"] == steps.count(0)
    assert tally["gaps"] == sum(step > 1 for step in steps)
    assert tally["received"] - tally["duplicated"] + tally["lost"] == numbers[-1] - start + 1
    assert tally["restarted"] == 0


def test_decoder_counts_a_restart_as_no_loss():
    data = b"".join(encode(Frame(number, 0, (0, 0, 0))) for number in (500, 501, 1, 2))
    _, tally = decoded(data)
    assert (tally["lost"], tally["restarted"]) == (0, 1)


# --- status ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0x0000, ""),
        (0x0003, ""),  # only the number of a sensor
        (0x2000, "error of the DAQ unit (status 0x2000)"),
        (0x0401, "no sensor at the DAQ unit: check the cable between them (status 0x0401)"),
        (0x0090, "overloaded in Fz, Tz: take the load away (status 0x0090)"),
        (0x0008, "several sensors have errors (status 0x0008)"),
        (
            0x6C10,
            "error 3 of the DAQ unit; error 3 of the sensor; overloaded in Tz: take the load away (status 0x6c10)",
        ),
    ],
)
def test_status_message_names_every_error(status, words):
    assert status_words_frames(status) == words
