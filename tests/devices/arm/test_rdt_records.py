"""Records of the raw data transfer: the published example, every disorder of datagrams, the status in words."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.arm.sensors.rdt_records import RECORD, RESTARTED, Records, parse_record
from devices.arm.sensors.rdt_status import AXIA, LATCHED, NET_FT, health_of, status_words
from devices.arm.sensors.wire import Health

EXAMPLE = "ffffffff 80000000 80020000 ffffffff 00000002 fffffffd 00000004 fffffffb 00000006"
WRAP = 1 << 32
starts = st.integers(0, WRAP - 1)


def record(number, status=0, counts=(0,) * 6):
    return struct.pack(">3I6i", number % WRAP, number % WRAP, status, *counts)


def test_the_published_example():
    data = bytes.fromhex(EXAMPLE)
    assert len(data) == RECORD.size == 36
    assert parse_record(data) == (0xFFFFFFFF, 0x80000000, 0x80020000, (-1, 2, -3, 4, -5, 6))


def taken(records, *datagrams):
    for datagram in datagrams:
        records.take(datagram)
    return records.collect()


def test_nothing_came():
    assert Records().collect() is None


@given(
    start=starts,
    steps=st.lists(st.integers(0, 5), min_size=1, max_size=60),
    jitter=st.lists(st.integers(0, 4), min_size=60, max_size=60),
)
def test_whatever_comes_is_newer_and_all_the_rest_is_counted(start, steps, jitter):
    """Numbers grow by 0 (a duplicate), 1 or more (a loss) and change places with their neighbours."""
    offsets, position = [], 0
    for step in steps:
        position += step
        offsets.append(position)
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
def test_records_back_to_back_are_as_good_as_one_by_one(start, sizes):
    records, number = Records(), start
    for size in sizes:
        got = taken(records, b"".join(record(number + k) for k in range(size)))
        number += size
        assert got is not None
        assert got.number == (number - 1) % WRAP
    assert records.tally["received"] == sum(sizes)
    assert records.tally["lost"] == 0


def test_the_newest_of_many_is_kept_and_the_status_of_all():
    got = taken(Records(), record(1), record(2, 0x80020000), record(4, 0, (1, 2, 3, 4, 5, 6)), record(3, 0x4))
    assert got == (4, 4, 0x80020000, (1, 2, 3, 4, 5, 6))  # the late one says nothing


def test_a_status_is_told_once():
    records = Records()
    assert taken(records, record(1, 0x80020000)).status == 0x80020000
    assert taken(records, record(2)).status == 0


@given(data=st.binary(max_size=120).filter(lambda data: len(data) % 36 or not data))
def test_what_is_no_record_is_malformed(data):
    records = Records()
    assert taken(records, data) is None
    assert records.tally["malformed"] == 1


def test_a_stream_that_begins_anew_is_noticed():
    records = Records()
    taken(records, record(5000))
    got = [taken(records, record(number)) for number in range(1, 2 * RESTARTED)]
    assert [one.number for one in got if one is not None] == list(range(RESTARTED, 2 * RESTARTED))
    assert records.tally["restarted"] == 1


def test_late_records_now_and_then_are_no_new_beginning():
    records = Records()
    for number in range(100, 100 + 4 * RESTARTED, 2):
        taken(records, record(number + 1), record(number))
    assert records.tally["late"] == 2 * RESTARTED
    assert records.tally["restarted"] == 0


def test_a_stream_that_is_known_to_begin_anew_loses_nothing():
    records = Records()
    taken(records, record(5000))
    records.forget()
    assert taken(records, record(1)).number == 1
    assert records.tally["late"] == records.tally["lost"] == 0


# --- status ----------------------------------------------------------------------------------------------------------


def test_only_a_latch_is_a_warning():
    assert health_of(0) is Health.OK
    assert health_of(LATCHED) is Health.WARNING
    assert "a monitored condition was met" in status_words(LATCHED, NET_FT)


@given(
    status=st.integers(1, WRAP - 1).filter(lambda status: status != LATCHED), meanings=st.sampled_from([NET_FT, AXIA])
)
def test_every_other_status_is_a_fault_in_words(status, meanings):
    assert health_of(status) is Health.FAULT
    words = status_words(status, meanings)
    assert f"{status:#010x}" in words
    for bit, meaning in meanings.items():
        assert (meaning in words) == bool(status >> bit & 1)


def test_what_has_no_words_has_its_number():
    assert "unknown status bit 15" in status_words(0x80008000, NET_FT)
    assert "an error it does not name" in status_words(0x80000000, NET_FT)
    assert status_words(0, NET_FT) == ""


@pytest.mark.parametrize(("meanings", "status"), [(NET_FT, 0x80020000), (AXIA, 0x88000000), (AXIA, 0xC0000000)])
def test_an_overload_comes_with_its_remedy(meanings, status):
    assert "take the load away" in status_words(status, meanings)
