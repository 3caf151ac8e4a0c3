"""Frames of OptoForce sensors: a real recording with real damage, and every way to cut, mix and damage them."""

import itertools
import random
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.arm.sensors.optoforce_frames import Acknowledgement, Decoder, Frame, configuration, status_words

CAPTURE = Path(__file__).resolve().parents[4] / "shared" / "data" / "optoforce" / "omd45_capture.bin"
EXAMPLE = bytes.fromhex("aa07080a 2d6a 0000 fff7 fffb 0007 0551")
CUT = bytes.fromhex("aa07080a b3b0 0000 ff270a")
"""How the recording ends: with a frame that may still go on."""
ANSWER = bytes.fromhex("aa0050010000fb")
HEADERS = [bytes.fromhex(text) for text in ("aa07080a", "aa070810", "aa07081c", "aa005001", "aa07", "aa")]

counts = st.integers(-32768, 32767)
shorts = st.integers(0, 65535)
frames = st.builds(
    Frame, shorts, shorts, st.sampled_from([3, 6, 12]).flatmap(lambda n: st.tuples(*[counts] * n))
)  # fmt: skip
tricky = st.sampled_from([-21753, 2058, 2064, -22009, 1800, -21936])
"""Counts whose bytes are those of headers: AA07, 080A, 0810, AA07 ..."""
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


@pytest.fixture(scope="module")
def capture():
    if not CAPTURE.exists():
        pytest.skip("the recording omd45_capture.bin is not here")
    return CAPTURE.read_bytes()


# --- the recording ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(capture):
    return decoded(capture)


def test_every_good_frame_of_a_real_recording_and_no_other(capture, whole):
    found, tally = whole
    assert found[0] == Acknowledgement(0)
    assert found[1] == Frame(11626, 0, (-9, -5, 7))
    good = found[1:]
    assert all(isinstance(frame, Frame) and len(frame.counts) == 3 for frame in good)
    assert len(good) == tally["received"] == 34_320
    # none invented: each is in the recording as it stands, one after the other
    position = 0
    for frame in good:
        position = capture.index(encode(frame), position) + 16
    assert capture.endswith(CUT)
    assert tally["skipped"] == len(capture) - len(CUT) - 7 - 16 * 34_320


def test_gaps_of_a_real_recording_are_reported(whole):
    found, tally = whole
    numbers = [frame.number for frame in found[1:]]
    steps = [(later - former) % 65536 for former, later in itertools.pairwise(numbers)]
    assert tally["gaps"] == sum(step != 1 for step in steps) == 54
    assert tally["lost"] == sum(step - 1 for step in steps) == 54
    assert tally["duplicated"] == tally["restarted"] == 0


@pytest.mark.parametrize("longest", [1, 7, 16, 1000])
def test_a_real_recording_in_pieces(capture, whole, longest):
    """Pieces of random sizes; those of one byte only of a part, which has two damaged frames in it."""
    part = capture if longest > 1 else capture[:40_000]
    dice, cuts = random.Random(longest), [0]
    while cuts[-1] < len(part):
        cuts.append(cuts[-1] + dice.randint(1, longest))
    assert decoded(part, cuts[1:-1]) == (whole if longest > 1 else decoded(part))


@settings(max_examples=10)
@given(cuts=st.lists(st.integers(0, 30_000), max_size=200))
def test_a_part_of_a_real_recording_in_any_pieces(capture, cuts):
    part = capture[150_000:180_000]
    assert decoded(part, cuts) == decoded(part)


# --- examples --------------------------------------------------------------------------------------------------------


def test_the_published_example():
    assert decoded(EXAMPLE)[0] == [Frame(11626, 0, (-9, -5, 7))]
    assert encode(Frame(11626, 0, (-9, -5, 7))) == EXAMPLE


def test_the_published_answer():
    assert decoded(ANSWER)[0] == [Acknowledgement(0)]
    assert decoded(ANSWER[:4] + b"\x02\x00\xfd")[0] == [Acknowledgement(2)]


def test_a_configuration_has_nine_bytes_and_its_sum():
    message = configuration(1, 4, 255)
    assert message[:7] == bytes.fromhex("aa 00 32 03 01 04 ff")
    assert message[7:] == sum(message[:7]).to_bytes(2, "big")


# --- cut, mixed, damaged ---------------------------------------------------------------------------------------------

PADDING = bytes(40)
"""Longer than any frame: whatever seems to begin before it ends in it."""


@given(
    parts=st.lists(st.tuples(st.binary(max_size=20) | st.sampled_from(HEADERS), frames | tricky_frames), max_size=8),
    cuts=st.lists(st.integers(0, 500), max_size=30),
)
def test_good_frames_survive_whatever_is_between_them(parts, cuts):
    data = b"".join(junk + encode(frame) for junk, frame in parts) + PADDING
    found, tally = decoded(data, [cut for cut in cuts if cut < len(data)])
    assert [frame for _, frame in parts] == [frame for frame in found if isinstance(frame, Frame)]
    assert tally["received"] == len(parts)


@given(data=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300), max_size=20))
def test_noise_gives_the_same_in_any_pieces(data, cuts):
    assert decoded(data, [cut for cut in cuts if cut < len(data)]) == decoded(data)


@given(before=frames, after=frames, frame=frames, data=st.data())
def test_a_damaged_frame_is_no_frame(before, after, frame, data):
    """One bit wrong, wherever: sums of 16 bits see that."""
    wrong = bytearray(encode(frame))
    wrong[data.draw(st.integers(0, len(wrong) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    found, _ = decoded(encode(before) + bytes(wrong) + encode(after) + PADDING)
    assert found == [before, after]


@given(before=frames, after=frames, frame=frames, data=st.data())
def test_a_cut_frame_is_no_frame(before, after, frame, data):
    whole = encode(frame)
    found, _ = decoded(encode(before) + whole[: data.draw(st.integers(0, len(whole) - 1))] + encode(after) + PADDING)
    assert found == [before, after]


def test_a_frame_with_a_whole_frame_inside_is_one_frame():
    inner = encode(Frame(2, 0, (1, 2, 3)))
    outer = Frame(1, 0, (*struct.unpack(">8h", inner), 0, 0, 0, 0))
    assert decoded(encode(outer))[0] == [outer]


@given(start=shorts, steps=st.lists(st.integers(0, 400), max_size=50))
def test_numbers_tell_what_is_missing(start, steps):
    numbers = list(itertools.accumulate(steps, initial=start))
    _, tally = decoded(b"".join(encode(Frame(number % 65536, 0, (0, 0, 0))) for number in numbers))
    assert tally["received"] == len(numbers)
    assert tally["duplicated"] == steps.count(0)
    assert tally["gaps"] == sum(step > 1 for step in steps)
    assert tally["received"] - tally["duplicated"] + tally["lost"] == numbers[-1] - start + 1
    assert tally["restarted"] == 0


def test_numbers_that_begin_anew_are_no_loss():
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
        (0x4000, "the DAQ unit cannot talk to the sensor (status 0x4000)"),
        (0x0401, "no sensor at the DAQ unit: check the cable between them (status 0x0401)"),
        (0x0801, "the sensor has failed (status 0x0801)"),
        (0x1001, "the sensor is too hot or too cold (status 0x1001)"),
        (0x0200, "overloaded in Fx: take the load away (status 0x0200)"),
        (0x0090, "overloaded in Fz, Tz: take the load away (status 0x0090)"),
        (0x0008, "several sensors have errors (status 0x0008)"),
        (
            0x6C10,
            "error 3 of the DAQ unit; error 3 of the sensor; overloaded in Tz: take the load away (status 0x6c10)",
        ),
    ],
)
def test_status_in_words(status, words):
    assert status_words(status) == words


@given(status=shorts)
def test_every_error_has_words(status):
    assert bool(status_words(status)) == bool(status >> 3)
