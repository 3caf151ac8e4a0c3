"""Contract of all devices, as a test class to subclass with the name of a backend.

`DeviceContract` applies to every backend; `VirtualDeviceContract` adds requirements for simulated plants.
"""

import dataclasses
import math
import re
from typing import Any, ClassVar

import numpy as np
import pytest

import devices
from haptics.clock import Clock
from haptics.device import Causality, Device, DeviceSpec, State
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError


def safe_command(device):
    """Return a harmless command: zero force, or the present position."""
    if device.spec.causality is Causality.IMPEDANCE:
        return np.zeros(2)
    return device.read().position.copy()


class DeviceContract:
    """Contract of a device.

    Subclass it as ``TestMyDevice`` and set `name` and, if needed, `settings`. `name` is a key of `devices.BACKENDS`.
    """

    name: ClassVar[str]
    settings: ClassVar[dict[str, Any]] = {}

    def make(self, clock=None, **changes):
        return devices.create_device(self.name, {**self.settings, **changes}, clock=clock)

    @pytest.fixture
    def device(self):
        device = self.make()
        device.open()
        yield device
        device.close()

    # --- before opening

    def test_data_sheet_is_known_before_it_is_opened(self):
        device = self.make()
        assert isinstance(device, Device)
        spec = device.spec
        assert spec.name == self.name
        assert spec.identity
        assert 0.0 < spec.rate_min < spec.rate_max
        assert all(low < high for low, high in zip(spec.workspace_min, spec.workspace_max, strict=True))
        numbers = [value for value in dataclasses.asdict(spec).values() if isinstance(value, float)]
        assert all(math.isfinite(value) and value >= 0.0 for value in numbers)

    def test_description_agrees_with_the_data_sheet(self):
        described = {backend.name: backend for backend in devices.describe_backends()}
        assert described[self.name].causality is self.make().spec.causality
        assert described[self.name].description

    def test_can_be_closed_but_not_read_or_written_before_it_is_open(self):
        device = self.make()
        device.close()
        with pytest.raises(DeviceOpenError, match=r"open\(\)"):
            device.read()
        with pytest.raises(DeviceOpenError, match=r"open\(\)"):
            device.write(np.zeros(2))

    def test_unknown_setting_is_refused_by_name(self):
        with pytest.raises(ConfigurationError, match=re.escape("device.colour")):
            self.make(colour="red")

    # --- while open

    def test_opening_twice_is_opening_once(self, device):
        device.read()
        device.open()
        assert np.isfinite(device.read().position).all()

    def test_samples_are_finite_and_inside_the_workspace(self, device):
        size = sum(size for _, _, size in device.spec.channels)
        for _ in range(20):
            state = device.read()
            assert isinstance(state, State)
            for vector in (state.position, state.velocity, state.force):
                assert vector.shape == (2,)
                assert vector.dtype == np.float64
                assert np.isfinite(vector).all()
            assert (state.position >= device.spec.workspace_min).all()
            assert (state.position <= device.spec.workspace_max).all()
            assert (0 if state.channels is None else state.channels.shape) in {0, (size,)}
            assert size or state.channels is None

    def test_only_an_admittance_device_reports_a_force(self, device):
        forces = [device.read().force.copy() for _ in range(20)]
        assert np.any(forces) == (device.spec.causality is Causality.ADMITTANCE)

    def test_takes_commands_and_does_not_keep_their_array(self, device):
        command = safe_command(device)
        for _ in range(5):
            device.read()
            device.write(command)
        command[:] = np.nan
        assert np.isfinite(device.read().position).all()

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_refuses_a_command_that_is_not_finite(self, device, bad):
        with pytest.raises(DeviceFault, match=self.name):
            device.write(np.array((0.0, bad)))
        assert np.isfinite(device.read().position).all()

    def test_samples_are_fresh(self):
        clock = Clock(1e-3)
        device = self.make(clock)
        device.open()
        for tick in range(10):
            clock.wait(tick)
            age = clock.time - device.read().time
            assert 0.0 <= age <= device.spec.max_sample_age
        device.close()

    # --- after closing

    def test_closing_twice_is_closing_once(self, device):
        device.close()
        device.close()
        with pytest.raises(DeviceOpenError):
            device.read()

    def test_can_be_opened_again(self, device):
        device.close()
        device.open()
        assert np.isfinite(device.read().position).all()


def drive(device, ticks, clock=None):
    """Run a simple loop around a device and return time, position, velocity and force per tick, (n, 7).

    An impedance device gets viscous friction, an admittance device a reference that yields to the force.
    """
    rows = np.empty((len(ticks), 7))
    reference = None
    for row, tick in zip(rows, ticks, strict=True):
        if clock is not None:
            clock.wait(tick)
        state = device.read()
        row[0] = state.time
        row[1:3], row[3:5], row[5:7] = state.position, state.velocity, state.force
        if device.spec.causality is Causality.IMPEDANCE:
            device.write(-2.0 * state.velocity)
        else:
            reference = state.position.copy() if reference is None else reference + 2e-5 * state.force
            device.write(reference)
    return rows


class VirtualDeviceContract(DeviceContract):
    """Additional contract of a simulated plant: bit-exact repeatability, with and without a clock."""

    highest_rate = 4000.0

    def run(self, ticks=400, clock=None, **changes):
        device = self.make(clock, **changes)
        device.open()
        rows = drive(device, range(ticks), clock)
        device.close()
        return rows

    def test_data_sheet_names_the_seed_and_the_rates(self):
        spec: DeviceSpec = self.make(seed=7).spec
        assert spec.identity == "virtual, seed 7"
        assert (spec.rate_min, spec.rate_max) == (100.0, self.highest_rate)

    def test_seed_determines_every_bit_with_a_clock_and_without(self):
        bits = self.run(seed=3).tobytes()
        assert bits == self.run(seed=3).tobytes() == self.run(seed=3, clock=Clock(1e-3)).tobytes()
        assert bits != self.run(seed=4).tobytes()

    def test_repeats_itself_when_it_is_opened_again(self):
        device = self.make()
        runs = []
        for _ in range(2):
            device.open()
            runs.append(drive(device, range(200)).tobytes())
            device.close()
        assert runs[0] == runs[1]

    def test_moves_and_samples_have_the_nominal_time(self):
        rows = self.run(1000, Clock(1e-3))
        assert np.ptp(rows[:, 1]) > 1e-3
        np.testing.assert_array_equal(rows[:, 0], np.arange(1000) * 1e-3)

    def test_reading_twice_in_a_tick_gives_the_same_sample(self):
        clock = Clock(1e-3)
        device = self.make(clock)
        device.open()
        clock.wait(5)
        first = device.read()
        copies = [first.position.copy(), first.velocity.copy(), first.force.copy()]
        second = device.read()
        for copy, vector in zip(copies, (second.position, second.velocity, second.force), strict=True):
            np.testing.assert_array_equal(copy, vector)

    def test_advances_further_after_missed_ticks(self):
        clocks = Clock(1e-3), Clock(1e-3)
        every, some = (self.make(clock) for clock in clocks)
        for device in (every, some):
            device.open()
        steady = safe_command(every)
        for tick in range(301):
            clocks[0].wait(tick)
            all_ticks = every.read()
            every.write(steady)
            if tick % 20 == 0:
                clocks[1].wait(tick)
                few_ticks = some.read()
                some.write(steady)
        assert few_ticks.time == all_ticks.time
        # The hand is sampled twenty times more coarsely, which is the only permitted difference.
        np.testing.assert_allclose(few_ticks.position, all_ticks.position, atol=2e-4)

    @pytest.mark.parametrize("rate", [100.0, 250.0, 2500.0, None])
    def test_other_rates_give_the_same_motion(self, rate):
        rate = rate or self.highest_rate
        period = 1.0 / rate
        end = self.run(round(0.4 * rate) + 1, Clock(period), hand={"name": "minimum-jerk", "tremor": 0.0})[-1]
        reference = self.run(401, Clock(1e-3), hand={"name": "minimum-jerk", "tremor": 0.0})[-1]
        assert end[0] == pytest.approx(0.4)
        np.testing.assert_allclose(end[1:3], reference[1:3], atol=1e-3)

    def test_integrates_nothing_when_it_is_opened_late_and_goes_on_when_the_clock_is_started_afresh(self):
        clock = Clock(1e-3)
        clock.wait(5000)
        device = self.make(clock)
        device.open()
        np.testing.assert_allclose(device.read().position, device.hand.start, atol=2e-5)
        device.close()
        device.open()
        clock.start()
        rows = drive(device, range(400), clock)
        assert rows[:, 1:].tobytes() == self.run()[:, 1:].tobytes()

    # --- log

    def test_log_holds_every_command_in_order_and_ends_with_the_safe_output(self, tmp_path):
        path = tmp_path / "log.npy"
        device = self.make(log=str(path))
        device.open()
        sent = []
        for tick in range(30):
            sent.append(device.read().position * (1.0 - 0.01 * tick))
            device.write(sent[-1])
        device.close()
        log = np.load(path)
        used = log[log["monotonic_ns"] > 0]
        safe = np.zeros(2) if device.spec.causality is Causality.IMPEDANCE else sent[-1]
        np.testing.assert_array_equal(used["command"], [*sent, safe])
        np.testing.assert_array_equal(used["time"][:30], np.arange(30) * 1e-3)
        assert (np.diff(used["monotonic_ns"]) >= 0).all()

    def test_log_that_cannot_be_made_is_named(self, tmp_path):
        device = self.make(log=str(tmp_path / "nowhere" / "log.npy"))
        with pytest.raises(DeviceOpenError, match=re.escape("device.log")):
            device.open()
        with pytest.raises(DeviceOpenError):
            device.read()
