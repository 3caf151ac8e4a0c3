"""The parameter file of a stick: round trip, validation, resolution."""

import errno
import math
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.joystick.device import require_parameters
from devices.joystick.parameters import (
    Axes,
    DeviceIdentity,
    Force,
    Handle,
    Provenance,
    StickParameters,
    build_parameters,
    format_parameters,
    read_parameters,
    write_parameters,
)
from haptics.errors import ConfigurationError
from haptics.files import parse_toml
from tests.devices.joystick.doubles import FakeTransport

numbers = st.floats(-1e3, 1e3, allow_nan=False).map(lambda value: value or 1.0)
angles = st.floats(-math.pi, math.pi)


def turned(scale, angle):
    c, s = scale * math.cos(angle), scale * math.sin(angle)
    return (c, s), (s, -c)


@st.composite
def parameters(draw):
    largest = draw(st.floats(0.1, 50.0))
    return StickParameters(
        DeviceIdentity(
            vendor_id=draw(st.integers(0, 0xFFFF)),
            product_id=draw(st.integers(0, 0xFFFF)),
            serial=draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=8)),
            name=draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=8)),
            report_descriptor_sha256=draw(st.text("0123456789abcdef", min_size=64, max_size=64)),
            in_interval_s=1e-3,
            out_interval_s=draw(st.floats(125e-6, 0.01)),
            out_endpoint=draw(st.booleans()),
        ),
        Axes(
            centre_counts=(draw(numbers), draw(numbers)),
            counts_to_m=turned(draw(st.floats(1e-7, 1e-3)), draw(angles)),
            workspace_min_m=(-draw(st.floats(0.01, 0.2)), -0.1),
            workspace_max_m=(0.1, draw(st.floats(0.01, 0.2))),
        ),
        Force(
            newton_to_level=turned(1.0 / largest, draw(angles)),
            max_force_n=0.999 * largest,
            full_scale=draw(st.integers(0, 2**31)),
            source="weight",
        ),
        Handle(moving_mass_kg=draw(st.none() | st.floats(0.01, 5.0)), dead_man_button=draw(st.integers(0, 31))),
        Provenance(date="2026-01-31", method=draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=8))),
    )


GOOD = StickParameters(
    DeviceIdentity(
        **{"vendor_id": 0x1209, "product_id": 0xFFB0, "serial": "S", "name": "N", "report_descriptor_sha256": "0" * 64},
        **{"in_interval_s": 1e-3, "out_interval_s": 1e-3},
    ),
    Axes(
        **{"centre_counts": (0.0, 0.0), "counts_to_m": ((1e-6, 0.0), (0.0, -1e-6))},
        **{"workspace_min_m": (-0.05, -0.05), "workspace_max_m": (0.05, 0.05)},
    ),
    Force(newton_to_level=((0.1, 0.0), (0.0, 0.1)), max_force_n=8.0),
)


@given(parameters())
def test_format_and_parse_are_inverse(given_parameters):
    assert build_parameters(parse_toml(format_parameters(given_parameters), "file"), "file") == given_parameters


def test_existing_file_is_replaced_atomically(tmp_path, monkeypatch):
    path, link = tmp_path / "stick.toml", tmp_path / "link.toml"
    path.write_text("as before")
    link.symlink_to(path)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(ConfigurationError, match=r"stick\.toml: cannot be written \(No space left on device\)"):
            write_parameters(path, GOOD)
    assert path.read_text() == "as before"
    write_parameters(link, GOOD)
    assert link.is_symlink()
    assert read_parameters(path) == GOOD
    assert sorted(tmp_path.iterdir()) == [link, path]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("vendor_id = 0x1209", "vendor_id = 70000", r"device\.vendor_id = 70000: must be .*at most 65535"),
        ('serial = "S"', "serial = 4", r"device\.serial = 4: must be text"),
        ('serial = "S"', 'seriel = "S"', r"Did you mean 'device\.serial'"),
        ("centre_counts = [0.0, 0.0]", "centre_counts = [0.0]", r"axes\.centre_counts = \(0\.0,\): must be two finite"),
        ("centre_counts = [0.0, 0.0]\n", "", r"axes\.centre_counts is missing"),
        ("[[1e-06, 0.0], [0.0, -1e-06]]", "[[1e-06, 0.0], [2e-06, 0.0]]", r"axes\.counts_to_m = .*not all on one line"),
        (
            "workspace_max_m = [0.05, 0.05]",
            "workspace_max_m = [0.05, -0.05]",
            r"must be greater than axes\.workspace_min",
        ),
        ("usage_y = 0x00010031", "usage_y = 0x00010030", r"axes\.usage_y = 0x10030: must be another axis"),
        ("max_force_n = 8.0", "max_force_n = 12.5", r"1\.25 times the device's full scale.*at most 10 N"),
        ('source = "stated"', 'source = "guessed"', r"one of weight, stated"),
        ("dead_man_button = 0", "dead_man_button = 32", r"handle\.dead_man_button = 32: .*at most 31"),
        (
            "dead_man_button = 0",
            "moving_mass_kg = -1",
            r"handle\.moving_mass_kg = -1: must be a number greater than 0 kg",
        ),
        ("[force]", "[forces]", r"unknown table 'forces'"),
        ("[axes]", "[axes", r"is no TOML"),
    ],
)
def test_invalid_value_is_named_with_the_file(old, new, message):
    text = format_parameters(GOOD)
    assert old in text
    with pytest.raises(ConfigurationError, match="stick.toml: .*" + message):
        build_parameters(parse_toml(text.replace(old, new), "stick.toml"), "stick.toml")


def test_unreadable_and_incomplete_files_are_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"cannot be read.*haptics calibrate joystick"):
        read_parameters(tmp_path / "none.toml")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_parameters(tmp_path / "nowhere" / "stick.toml", GOOD)
    with pytest.raises(ConfigurationError, match=r"table \[axes\] is missing"):
        build_parameters(parse_toml(format_parameters(GOOD).split("[axes]")[0], "stick.toml"), "stick.toml")


def test_resolutions_of_position_and_force():
    """They are the longest step of a count, and a step of the level if the full scale is known."""
    axes = replace(GOOD.axes, counts_to_m=((3e-6, 0.0), (4e-6, 1e-6)), count_quantum=16)
    assert axes.resolution == pytest.approx(16 * 5e-6)
    assert GOOD.force.resolution is None
    assert replace(GOOD.force, full_scale=255).resolution == pytest.approx(10.0 / 255)
    wheel = Force(newton_to_level=((0.02, 0.0), (0.0, 0.0)), max_force_n=50.0, full_scale=1000)
    assert wheel.resolution == pytest.approx(0.05)


@given(st.floats(-math.pi, math.pi), st.floats(0.1, 50.0), st.floats(-0.9, 0.9), st.integers(1, 40000))
def test_force_resolution_is_the_longest_level_step(angle, largest, skew, full):
    (a, b), (c, d) = turned(1.0 / largest, angle)
    matrix = np.array(((a, b + skew * a), (c, d + skew * c)))
    force = Force(newton_to_level=tuple(map(tuple, matrix.tolist())), max_force_n=0.1, full_scale=full)
    steps = np.linalg.inv(matrix) / full  # a step of the first level, and one of the second
    assert force.resolution == pytest.approx(np.hypot(*steps).max(), rel=1e-6)


# --- parameters of another stick --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("identity", "button", "words"),
    [
        ({"product_id": 0xFFB1}, 0, "identity is '1209:ffb1' in the file and '1209:ffb0' of the stick"),
        ({"serial": "2"}, 0, "serial is '2' in the file and '1' of the stick"),
        ({"report_descriptor_sha256": "0" * 64}, 0, "report descriptor is '000"),
        ({}, 9, r"handle\.dead_man_button = 9: the stick has 8 buttons"),
    ],
)
def test_parameters_that_do_not_fit_the_stick_are_refused(identity, button, words):
    link = FakeTransport("sidewinder-ff2").link

    def parameters(button, **identity):
        own = {"serial": link.serial, "report_descriptor_sha256": link.digest, **identity}
        return replace(GOOD, device=replace(GOOD.device, **own), handle=Handle(dead_man_button=button))

    assert require_parameters(parameters(8), link, "stick.toml") == parameters(8)
    with pytest.raises(ConfigurationError, match=words):
        require_parameters(parameters(button, **identity), link, "stick.toml")
    with pytest.raises(ConfigurationError, match=r"device\.parameters is missing"):
        require_parameters(None, link, "")
