"""Parts: called with a record or with where it lies, and records read where they lie."""

import numpy as np

from haptics.jit import kernel
from haptics.parts import address_of_part, call_part, float_at, integer_at, record_at, run_part

SHORT = np.dtype([("count", "<i8"), ("numbers", "<f8", (2,))])
SIZE = SHORT.itemsize
LONG = np.dtype([("count", "<i8"), ("numbers", "<f8", (2,)), ("more", "<f8")])


@kernel
def note(s, x, y):
    s.count += 1
    s.numbers[0], s.numbers[1] = x, y


@kernel
def note_with(records, address):
    call_part(address, records[0], 1.0, 2.0)


@kernel
def last_of(table, row):
    return record_at(table + row * SIZE, SHORT).numbers[1]


@kernel
def loaded(numbers, address):
    numbers[0] = integer_at(address)
    numbers[1] = float_at(address + 16)


def contents(records):
    return (int(records["count"][0]), *records["numbers"][0].tolist())


def test_a_part_works_on_the_record_that_it_is_called_with():
    records = np.zeros(1, SHORT)
    note_with(records, address_of_part(note, SHORT))
    assert contents(records) == (1, 1.0, 2.0)


def test_a_part_works_on_the_record_that_lies_where_it_is_told():
    records = np.zeros(3, SHORT)
    run_part(address_of_part(note, SHORT), records[1:].ctypes.data, 3.0, 4.0)
    assert records["count"].tolist() == [0, 1, 0]
    assert records["numbers"].tolist() == [[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]]


def test_a_part_serves_longer_records():
    records = np.zeros(1, LONG)
    note_with(records, address_of_part(note, SHORT))
    assert contents(records) == (1, 1.0, 2.0)


def test_a_part_has_one_address():
    assert address_of_part(note, SHORT) == address_of_part(note, SHORT) != address_of_part(note, LONG)


def test_rows_of_a_table_are_read_where_they_lie():
    table = np.zeros(4, SHORT)
    table["numbers"][:, 1] = (5.0, 6.0, 7.0, 8.0)
    assert [last_of(table.ctypes.data, row) for row in range(4)] == [5.0, 6.0, 7.0, 8.0]


def test_numbers_are_loaded_from_where_they_lie():
    records, numbers = np.zeros(1, SHORT), np.zeros(2)
    records["count"], records["numbers"] = 7, (0.0, 2.5)
    loaded(numbers, records.ctypes.data)
    assert numbers.tolist() == [7.0, 2.5]
