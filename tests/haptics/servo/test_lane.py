"""A lane hands over whole records, also while its writer is busy in another process."""

import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from haptics.errors import ConfigurationError
from haptics.servo.lane import Lane

PAIR = np.dtype([("first", "<i8"), ("second", "<i8"), ("filler", "<f8", (64,))])


def publish_many(path: Path, count: int) -> None:
    lane = Lane(path, PAIR)
    value = np.zeros(1, PAIR)
    for number in range(1, count + 1):
        value["first"] = value["second"] = value["filler"] = number
        lane.publish(value[0])


def test_the_latest_value_wins(tmp_path: Path) -> None:
    lane = Lane(tmp_path / "lane", PAIR, create=True)
    assert lane.version == 0
    publish_many(lane.path, 3)
    latest = lane.read()
    assert latest is not None
    version, value = latest
    assert (version, int(value["first"][0])) == (3, 3)


def test_a_record_is_never_half_old_and_half_new(tmp_path: Path) -> None:
    lane = Lane(tmp_path / "lane", PAIR, create=True)
    writer = multiprocessing.get_context("spawn").Process(target=publish_many, args=(lane.path, 20_000))
    writer.start()
    versions = [0]
    while versions[-1] < 20_000:
        latest = lane.read()
        if latest is None:
            continue
        version, value = latest
        assert value["first"][0] == value["second"][0] == version
        assert (value["filler"] == version).all()
        assert version >= versions[-1]
        versions.append(version)
    writer.join()
    assert writer.exitcode == 0


def test_a_writer_that_died_half_way_does_not_hang_the_reader(tmp_path: Path) -> None:
    lane = Lane(tmp_path / "lane", PAIR, create=True)
    publish_many(lane.path, 2)
    lane.sequence[0] += 1
    assert lane.read() is None
    assert lane.version == 2


def test_a_missing_lane_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nowhere"):
        Lane(tmp_path / "nowhere", PAIR)
