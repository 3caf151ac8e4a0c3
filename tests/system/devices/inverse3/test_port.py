"""An Inverse3 without Python: through its port the same bits as by ``read`` and ``write``, and whole sessions."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from devices.common import driver as drivers
from devices.inverse3.kernels import APPROACH
from haptics.clock import Clock, WallClock
from haptics.parts import run_part
from haptics.ports import port_of
from haptics.recording.replay import verify
from haptics.servo.system_kernels import AVAILABLE
from tests.devices.inverse3.figures import session, sliding
from tests.devices.inverse3.services import driven, wait_until

pytestmark = [
    pytest.mark.wall_clock,
    pytest.mark.skipif(not AVAILABLE, reason="no loop without Python here"),
]

PERIOD = 1e-3


class Turned(Clock):
    """A clock that a test turns; a tick is a little late."""

    def start(self):
        self.tick, self.origin_ns = 0, (7_000_000_000, 0)

    def elapsed(self):
        return self.time + 1e-4

    def instant(self):
        return 7.0 + self.elapsed()


def by_methods(device, clock, command, share):
    state = device.read()
    sample = *state.position, *state.velocity, *state.channels, state.time
    device.compensate(share)
    device.write(command)
    return sample


def by_port(device, clock, command, share):
    port = port_of(device)
    record, place = port.record[0], port.record.ctypes.data
    run_part(port.take, place, clock.time, clock.elapsed())
    sample = *record["position"], *record["velocity"], *record["channels"][:6], record["time"]
    record["assistance"] = share
    run_part(port.give, place, *command)
    assert not record["fault"]
    return sample


def moved(serve, server, monkeypatch, own_file, share=None):
    """Have states come in as from a cursor that moves in space; return samples and forces."""
    clock = Turned(PERIOD)
    clock.start()
    monkeypatch.setattr(drivers, "time", SimpleNamespace(perf_counter=clock.instant))
    monkeypatch.setattr(drivers, "WallClock", Turned)  # what the compiled loop follows
    rows, random = [], np.random.default_rng(4)
    with driven(server, clock, friction_parameters=own_file, plane="xz", origin=(0.0, 0.01, 0.0)) as device:
        exchange = device._opened()
        exchange.stop()
        for tick in range(600):
            clock.tick = tick if tick < 400 else tick - 300  # and is started afresh
            place = 0.03 * np.sin(0.02 * tick) * np.array((1.0, 0.3, -0.5))
            if tick % 3 != 2:
                exchange.samples.publish(clock.instant() - 1e-3, *place, *(10.0 * place), *(12.0 * place))
            wanted = random.uniform(-0.1, 1.1) if share is None else share
            sample = serve(device, clock, random.uniform(-1.0, 1.0, 2), wanted)
            rows.append((*sample, *exchange.forces.read()))
    return np.array(rows)


def test_through_its_port_it_measures_and_pushes_alike(server, monkeypatch, tmp_path):
    own_file = tmp_path / "own.toml"
    axis = "[joint.{0}.friction]\nmodel = 'coulomb-viscous'\ncoulomb_force_n = 0.4\nviscosity_ns_per_m = 0.1\n"
    own_file.write_text(axis.format("x") + axis.format("y"))
    runs = []
    for serve in (by_methods, by_port):
        with monkeypatch.context() as patch:
            runs.append(moved(serve, server, patch, str(own_file)))
    assert np.ptp(runs[0][:, :2], axis=0).min() > 2e-3
    assert np.ptp(runs[0][:, 11:14], axis=0).min() > 0.1
    for column in (10, 14):  # times: a clock of whole nanoseconds
        np.testing.assert_allclose(runs[0][:, column], runs[1][:, column], rtol=0.0, atol=2e-9)
        runs[0][:, column] = runs[1][:, column] = 0.0
    assert runs[0].tobytes() == runs[1].tobytes()


def test_what_is_told_and_what_is_given_are_compared_in_the_plane(server, monkeypatch):
    rows = moved(by_port, server, monkeypatch, "", share=0.0)
    x, z, height, hold, given_x, given_z, taken_x, taken_z = rows[:, [0, 1, 4, 5, 6, 7, 8, 9]].T
    np.testing.assert_allclose(given_x, 10.0 * x, atol=1e-12)
    np.testing.assert_allclose(given_z, 10.0 * z, atol=1e-12)
    np.testing.assert_allclose((taken_x, taken_z), (2.0 * x, 2.0 * z), atol=1e-12)
    np.testing.assert_allclose(height, 0.3 * x - 0.01, atol=1e-12)
    assert not hold.any() and not rows[:, 12].any(), "no force out of the plane in the safe output"


def test_the_force_out_of_the_plane_is_a_bounded_spring_that_begins_relaxed(server, monkeypatch):
    clock = Turned(PERIOD)
    clock.start()
    monkeypatch.setattr(drivers, "time", SimpleNamespace(perf_counter=clock.instant))
    with driven(server, clock, hold_stiffness=200.0, hold_damping=0.0, hold_force=1.5) as device:
        exchange = device._opened()
        exchange.stop()
        forces = []
        for tick in range(1000):
            clock.tick = tick
            exchange.samples.publish(clock.instant(), 0.0, 0.0, -0.02, *[0.0] * 6)
            by_methods(device, clock, np.zeros(2), 0.0 if tick < 10 else 1.0)
            forces.append(exchange.forces.read()[2])
    forces = np.array(forces)
    assert not forces[:10].any()
    expected = np.minimum(200.0 * APPROACH * PERIOD * np.arange(1, 991), 1.5)
    np.testing.assert_allclose(forces[10:], expected, atol=1e-9)


def test_a_tick_that_has_died_leaves_no_force_on_though_the_thread_lives(server):
    clock = WallClock(PERIOD)
    (one,) = server.service.devices
    with driven(server, clock) as device:
        clock.start()
        port = port_of(device)

        def pushed():
            place = port.record.ctypes.data
            run_part(port.take, place, clock.elapsed(), clock.elapsed())
            run_part(port.give, place, 0.3, 0.2)
            os.eventfd_write(port.wake, 1)
            return any(one.told)

        wait_until(pushed)
        wait_until(lambda: not any(one.told))
        assert not device._opened().failure


def test_a_session_slides_at_the_friction_that_was_asked_for_and_replays_bit_for_bit(tmp_path: Path) -> None:
    answer, recording = session(tmp_path, 3.0, "--set", "hand.tremor=0", "--set", "hand.rest=0")
    assert answer["lost_ticks"] == 0
    assert verify(recording).mismatches == 0
    found = sliding(recording.rows)
    assert found["ticks"] > 200
    assert found["commanded_n"] == pytest.approx(3.0, rel=1e-6)
    assert found["given_n"] == pytest.approx(3.0, rel=0.01)
    told = json.loads((Path(answer["recording"]) / "recording.json").read_text())
    assert [name for name, _, _ in told["device"]["channels"]][:2] == ["height", "hold_force"]
