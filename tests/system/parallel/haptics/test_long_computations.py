"""Long computations of topics that are tested in tests/haptics."""

from __future__ import annotations

import functools
import math
import multiprocessing
import subprocess
import sys
import tracemalloc
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import devices
from haptics import AmbiguousLawWarning, ClosedForm, Coulomb, Network, RigidAdmittance, Status, simulate
from haptics.design.advice import Severity, advise, suggest
from haptics.design.bounds import SETTLED, count_jump, settling_time, stiffness_limit
from haptics.design.loops import Coupling, Handle, growth, stuck_matrix
from haptics.recording.certificate import RunSummary
from haptics.recording.tick_file import PackedTable, TableInMemory, write_packed
from haptics.records import COLUMNS as COLUMN_TYPES
from haptics.rendering.envelope import ENVELOPE_FLAGS
from haptics.servo.control import Job
from haptics.servo.mailbox import Mailbox
from haptics.servo.process import ServoProcess
from haptics.trace import Reader, Ring
from tests.haptics.design.test_advice import model_c, table
from tests.haptics.doubles import make_spec
from tests.haptics.elements.test_network import both
from tests.haptics.recording.test_certificate import everything, random_run
from tests.haptics.recording.test_tick_file import blocks  # noqa: F401
from tests.haptics.references import rubber
from tests.haptics.rendering.test_envelope_machine import run_machine
from tests.haptics.servo.test_process import PAIR, publish_many
from tests.haptics.strategies import log_floats
from tests.haptics.test_kernel_cache import ROOT, Pair, pair  # noqa: F401
from tests.haptics.test_trace import SMALL, open_descriptors, write_many
from tests.system.haptics.test_process import await_message, make_bench, make_job


def test_trace_never_returns_a_torn_row(tmp_path):
    ring = Ring.create(tmp_path / "ring", SMALL, 64)
    reader = Reader(ring)
    writer = multiprocessing.get_context("spawn").Process(target=write_many, args=(ring.path, 20_000, 50))
    writer.start()
    total = 0
    while writer.is_alive() or ring.count > total + reader.lost:
        rows = reader.read()
        assert (rows["twice"] == 2 * rows["number"]).all()
        assert (rows["vector"][:, 0] == rows["number"]).all()
        assert (np.diff(rows["number"]) == 1).all()
        total += len(rows)
    writer.join()
    assert writer.exitcode == 0
    assert total + reader.lost == 20_000
    assert total > 0


def one_session(folder):
    job: Job = make_job(folder, functools.partial(make_bench, None), 0.05)
    servo = ServoProcess(job)
    servo.start()
    while await_message(servo)[0] != "ended":
        pass
    servo.close()


def test_sessions_leave_no_descriptor_open(tmp_path):
    one_session(tmp_path)  # the first one also starts shared helpers
    before = open_descriptors()
    one_session(tmp_path)
    one_session(tmp_path)
    assert open_descriptors() == before


WITHOUT_A_COMPILER = """
import sys
import numpy as np
sys.path.insert(0, {folder!r})
from kernel_cache_caller import caller
print(caller(1.0), sum(caller.stats.cache_hits.values()), "numba.np.arraymath" in sys.modules)
from haptics.jit import kernel
@kernel
def another(x):
    return np.array([caller(x), 1.0]).sum()
print(another(1.0), "numba.np.arraymath" in sys.modules)
"""


def test_cached_kernels_need_no_compiler(pair, tmp_path):
    pair.load()
    program = WITHOUT_A_COMPILER.format(folder=str(tmp_path / "1"))
    environment = {"PATH": "", "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    answers = [
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert answers[0].stdout.split() == ["6.0", "0", "True", "7.0", "True"]
    assert answers[1].stdout.split() == ["6.0", "1", "False", "7.0", "True"]


def _slide(network, steps):
    return network.simulate(steps, base_velocity=[(5.0, 0.0)])


def test_network_continues_in_another_process():
    """Sliding contacts call the compiled function of a custom law, which has another address there."""
    network = Network()
    base = network.base()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)
        network.contact(network.body(1.0), base, rubber(static=2.0, kinetic=1.0), 2e4, 100.0)
        network.contact(network.body(2.0), base, ClosedForm(rubber(static=3.0)), 2e4, 100.0)
    for _ in range(30):
        network.step([(5.0, 0.0)])
    expected = _slide(network, 50)
    assert not expected.sticking.any()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        both(pool.submit(_slide, network, 50).result(), expected, assert_array_equal)


@settings(max_examples=5)
@given(
    mass=log_floats(0.03, 3.0),
    own=st.one_of(st.just(0.0), log_floats(0.05, 5.0)),
    delay=st.floats(0.0, 3e-3),
    resolution=st.one_of(st.just(0.0), log_floats(1e-6, 3e-4)),
    force=log_floats(0.3, 20.0),
)
def test_suggestion_keeps_every_bound_and_is_optimal(mass, own, delay, resolution, force):
    handle = Handle(mass, own, delay, resolution)
    found = suggest(handle, force)
    assert found.growth == growth(stuck_matrix(Coupling(found.stiffness, found.damping), handle)) < 1.0
    assert found.presliding == pytest.approx(force / found.stiffness)
    assert found.count_jump == count_jump(Coupling(found.stiffness, found.damping), handle)

    def allowed(damping):
        stable = min(stiffness_limit(handle, damping), stiffness_limit(handle, 2.0 * damping)) / 2.0
        fine = (0.1 * force - damping * resolution / 1e-3) / resolution if resolution else math.inf
        return max(min(stable, fine), 0.0)

    assert found.stiffness <= allowed(found.damping) * (1.0 + 1e-6)
    others = [(allowed(damping), damping) for damping in found.damping * np.geomspace(0.2, 5.0, 13)]
    couplings = [Coupling(k, damping) for k, damping in others if k > 0.0]
    best = max(couplings, key=lambda coupling: coupling.stiffness)
    if settling_time(handle, best) < SETTLED:
        assert found.stiffness >= 0.995 * best.stiffness
    shortest = min(settling_time(handle, coupling) for coupling in couplings)
    assert found.settling <= max(SETTLED, 3.3 * shortest)


@settings(max_examples=5)
@given(
    mass=log_floats(0.03, 3.0),
    own=log_floats(0.05, 5.0),
    delay=st.floats(0.0, 9e-3),
    resolution=log_floats(1e-6, 3e-4),
    force=log_floats(0.3, 9.0),
)
def test_suggestion_gives_no_warning(mass, own, delay, resolution, force):
    spec = make_spec(mass=mass, damping=own, delay=delay, position_resolution=resolution)
    found = suggest(Handle(mass, own, delay, resolution), force)
    advice = advise(model_c(0.999 * found.stiffness, found.damping, force), spec)
    assert [one.text for one in advice if one.severity is Severity.WARNING] == []
    assert {one.bound for one in advice} <= {"settling", "presliding"}, "notes on what the device does not allow"
    soft = [one for one in advice if one.bound == "presliding"]
    assert bool(soft) is (force / (0.999 * found.stiffness) > 1e-3)


def test_every_rule_of_the_envelope_acts_and_no_limit_is_broken():
    """The machine makes no motions (`ASTRAY`), and random rules rarely reach `FOLLOWING_ERROR`."""
    rules = ENVELOPE_FLAGS & ~(Status.ASTRAY | Status.FOLLOWING_ERROR)
    assert run_machine(120) & rules == rules


def test_packing_memory_does_not_grow_with_the_length(tmp_path, blocks):
    def peak(count):
        rows = TableInMemory(np.zeros(count, COLUMN_TYPES))
        tracemalloc.start()
        write_packed(rows, tmp_path / f"{count}.npz")
        found = PackedTable(tmp_path / f"{count}.npz")
        found.sha256()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(30_000)
    assert peak(400_000) < 1.1 * peak(100_000)


@pytest.mark.parametrize("size", [1, 20, 777, 4096, 20_000])
def test_summary_does_not_depend_on_the_piece_size(size):
    rows = random_run(20_000)
    whole, pieces = RunSummary(1e-3).add(rows), RunSummary(1e-3)
    for start in range(0, len(rows), size):
        pieces.add(rows[start : start + size])
    assert everything(pieces) == everything(whole)


@pytest.mark.parametrize("row", table("servo law"))
def test_table_of_servo_laws_is_up_to_date(row):
    law, limit, shakes, *_ = row
    encoder = "both" if "linearising" in law else "motor"
    settings = {"servo": {"law": law.strip("`")}, "arm": {"encoder": encoder}}
    spec = devices.create_device("virtual-arm", settings | {"hand": {"name": "minimum-jerk"}}).spec
    assert (spec.grip_stiffness, spec.grip_damping) == (400.0, 8.0)
    assert spec.least_mass == pytest.approx(float(limit), abs=0.01)
    assert float(shakes) < float(limit)


def test_lane_never_returns_a_torn_record(tmp_path):
    lane = Mailbox(tmp_path / "lane", PAIR, create=True)
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


def test_stiff_network_contacts_converge_to_model_a():
    """Ten times the stiffness and a tenth of the period bring the motion closer to the rigid model A."""
    duration, errors = 0.6, []

    def push(time):
        return 4.0 * np.column_stack((np.sin(20.0 * time), 0.5 * np.cos(33.0 * time)))

    fine = RigidAdmittance(Coulomb(2.0), 1.0, period=1e-6)
    exact = simulate(fine, push(1e-6 * np.arange(1, 600_001))).velocity
    for period, stiffness in ((1e-3, 2e4), (1e-4, 2e5), (1e-5, 2e6)):
        steps = round(duration / period)
        network = Network(period)
        network.contact(network.body(1.0), network.wall, Coulomb(2.0), stiffness, np.sqrt(stiffness))
        run = network.simulate(steps, forces=push(period * np.arange(1, steps + 1))[:, None])
        every = round(period / 1e-6)
        errors.append(np.abs(run.body_velocity[:, 0] - exact[every - 1 :: every]).max())
    assert errors[1] < 0.4 * errors[0] and errors[2] < 0.4 * errors[1]
    assert errors[2] < 2e-3
