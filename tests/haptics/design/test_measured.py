"""Measured device files: they decide on couplings and replace facts of the data sheet."""

import pytest

from haptics.design import Coupling, Handle, growth, stiffness_limit, stuck_matrix
from haptics.design.measured import read_measured
from haptics.errors import ConfigurationError
from tests.haptics.doubles import make_spec

FILE = """
[provenance]
device = "bench one"
[axis.x]
mass_kg = 0.2
damping_ns_per_m = 1.0
delay_s = 0.0005
resolution_m = 1e-5
[axis.x.boundary]
rate_hz = 1000.0
damping_ns_per_m = 10.0
velocity_lag_s = 0.0
stiffness_n_per_m = 8000.0
[axis.y]
mass_kg = 0.3
damping_ns_per_m = 2.0
delay_s = 0.001
resolution_m = 2e-5
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "bench.toml").write_text(FILE)
    return tmp_path / "bench.toml"


def test_measured_boundary_is_the_limit(path):
    found = read_measured(path, "bench")
    found.require_held(7999.0, 10.0, 1e-3)
    with pytest.raises(ConfigurationError, match=r"begins to swing at 8000 N/m along x"):
        found.require_held(8001.0, 10.0, 1e-3)


def test_measured_boundary_scales_with_the_exact_limit(path):
    handle = Handle(0.2, 1.0, 0.5e-3, 1e-5)
    factor = 8000.0 / stiffness_limit(handle, 10.0, 1e-3)
    assert factor == pytest.approx(0.76, abs=0.02)  # docs/choosing_parameters.md has 10.5 kN/m for this handle
    x, y = read_measured(path, "bench").axes
    for damping, period in ((4.0, 1e-3), (10.0, 5e-4)):
        edge = x.limit(damping, period) / factor
        assert growth(stuck_matrix(Coupling(0.999 * edge, damping, period), handle)) < 1.0
        assert growth(stuck_matrix(Coupling(1.001 * edge, damping, period), handle)) > 1.0
    assert y.limit(4.0, 1e-3) == float("inf")  # where nothing was measured nothing is refused


def test_description_uses_the_worst_axis(path):
    spec = read_measured(path, "bench").describe(make_spec())
    assert (spec.mass, spec.damping, spec.delay, spec.position_resolution) == (0.2, 1.0, 0.001, 2e-5)


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ('"bench one"', '"stove one"', "is of the device 'stove one'; must be of 'bench'"),
        ("mass_kg = 0.2", "mass_kg = -1", r"axis\.x\.mass_kg = -1"),
        ("delay_s = 0.001", "", r"axis\.y\.delay_s = None"),
        ("rate_hz = 1000.0", "rate_hz = 0", "no contact of these numbers is ever stable"),
        (FILE[FILE.index("[axis.x]") :], "", r"no table \[axis\.x\]"),
    ],
)
def test_invalid_file_is_refused_with_its_name(path, before, after, complaint):
    path.write_text(FILE.replace(before, after))
    with pytest.raises(ConfigurationError, match=f"bench.toml: .*{complaint}"):
        read_measured(path, "bench")
    with pytest.raises(ConfigurationError, match="haptics calibrate device"):
        read_measured(path.with_name("none.toml"), "bench")
