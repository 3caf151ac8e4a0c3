"""The Force Dimension driver at a library in Python: opening, limits, exchange, safe output. No real time."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from devices import create_device
from devices.common.output import OutputRequests
from devices.forcedimension import device as driver
from devices.forcedimension.exchange import DeviceExchange
from devices.forcedimension.library import Sdk, SdkError
from haptics.clock import instructed_by
from haptics.errors import ConfigurationError, DeviceFault, DeviceNotFoundError, DeviceOpenError
from tests.devices.forcedimension.sdk import FakeDevice, FakeSdk

SETTINGS = SimpleNamespace(keep_alive=2e-3, watchdog=0.1)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(driver, "WARNING_TIME", 0.0)


@contextlib.contextmanager
def connected(monkeypatch, sdk, **settings):
    """Connect without starting the thread; at the end, bring the device to rest and close it."""
    monkeypatch.setattr(driver, "LIBRARY", SimpleNamespace(load=lambda *_: sdk))
    device = create_device("forcedimension", settings)
    with contextlib.ExitStack() as resources:
        yield device, device._connect(resources)


def refused(monkeypatch, sdk, words, error=DeviceOpenError, **settings):
    with pytest.raises(error, match=words), connected(monkeypatch, sdk, **settings):
        pass
    assert not any(one.opened for one in sdk.devices), "nothing stays open"
    assert not any(one.forces for one in sdk.devices), "nothing stays armed"


# --- opening ----------------------------------------------------------------------------------------------------------


def test_device_is_chosen_by_its_serial_number_and_the_others_are_closed(monkeypatch):
    sdk = FakeSdk(FakeDevice(11), FakeDevice(22), FakeDevice(33))
    with connected(monkeypatch, sdk, serial="22") as (device, _):
        assert [one.opened for one in sdk.devices] == [False, True, False]
        assert device.facts["serial"] == 22
    assert not sdk.devices[1].opened


@pytest.mark.parametrize("serial", [True, 2.5, -1, "12a", " 1"])
def test_serial_number_may_be_a_number_but_nothing_else(serial):
    assert create_device("forcedimension", {"serial": 1234}).settings.serial == "1234"
    with pytest.raises(ConfigurationError, match=r"device\.serial = .*must be a serial number such as 1234"):
        create_device("forcedimension", {"serial": serial})


def test_only_device_needs_no_serial_number(monkeypatch):
    with connected(monkeypatch, FakeSdk(FakeDevice(7))) as (device, exchange):
        assert device.facts["serial"] == 7
        assert exchange.samples.read()[1:4] == (0.01, 0.02, 0.03), "the first tick has a sample"


def test_missing_and_ambiguous_devices_are_said(monkeypatch):
    sdk = FakeSdk()
    sdk.devices.clear()
    refused(monkeypatch, sdk, "finds no device: plug it in", DeviceNotFoundError)
    refused(monkeypatch, FakeSdk(FakeDevice(1), FakeDevice(2)), r"several devices .*device\.serial: 1, 2")
    refused(
        monkeypatch, FakeSdk(FakeDevice(1)), r"no device\.serial = '3'; .* finds 1", DeviceNotFoundError, serial="3"
    )
    sdk = FakeSdk()
    sdk.results["dhdGetDeviceCount"] = -1
    refused(monkeypatch, sdk, r"dhdGetDeviceCount failed \(communication error\)")


def test_device_of_another_program_is_said(monkeypatch):
    sdk = FakeSdk()
    sdk.devices[0].opened = True
    with (
        pytest.raises(DeviceOpenError, match=r"no usable device: dhdOpenID failed .*close other programs"),
        connected(monkeypatch, sdk),
    ):
        pass


def test_other_family_is_refused_by_its_setting(monkeypatch):
    refused(monkeypatch, FakeSdk(FakeDevice(kind=63)), r"set device\.kind=delta")
    with connected(monkeypatch, FakeSdk(FakeDevice(kind=63)), kind="delta") as (device, _):
        assert device.spec.workspace_max == (0.12, 0.1)


def test_uninitialised_device_is_refused_and_initialised_on_request_only(monkeypatch):
    sdk = FakeSdk(FakeDevice(initialised=False))
    refused(monkeypatch, sdk, r"is not initialised.*device\.initialise=true: it then moves by itself.*hands off")
    assert "drdAutoInit" not in sdk.names()
    with pytest.warns(RuntimeWarning, match="moves by itself"), connected(monkeypatch, sdk, initialise=True):
        names = sdk.names()
        assert names.index("drdAutoInit") < names.index("drdStop") < names.index("dhdEnableForce")
    sdk = FakeSdk(FakeDevice(initialised=False))
    sdk.results["drdAutoInit"] = -1
    with pytest.warns(RuntimeWarning, match="moves by itself"):
        refused(monkeypatch, sdk, "drdAutoInit failed", initialise=True)
    assert "drdStop" in sdk.names()


def test_person_is_told_before_the_device_moves(monkeypatch):
    sdk, told = FakeSdk(FakeDevice(initialised=False)), []

    def show(words):
        told.append((words, "drdAutoInit" in sdk.names()))

    with instructed_by(show), connected(monkeypatch, sdk, initialise=True):
        assert told[0][0].startswith("the device moves by itself in 0 s") and "hands off" in told[0][0]
        assert [moved for _, moved in told] == [False, True] and told[1][0] == ""


def test_initialised_device_does_not_move(monkeypatch):
    sdk = FakeSdk()
    with connected(monkeypatch, sdk, initialise=True):
        assert "drdAutoInit" not in sdk.names()


def test_limits_of_the_maker_are_set_before_the_forces_and_recorded(monkeypatch):
    sdk = FakeSdk()
    limits = {"hardware_watchdog": 0.02, "velocity_threshold": 2, "max_force": 4.0, "hold_force": 3.0,
              "gravity_compensation": False, "effector_mass": 0.19, "maker_window": 10}  # fmt: skip
    with connected(monkeypatch, sdk, **limits) as (device, _):
        assert device.facts == {
            "name": "omega.3", "type": 33, "sdk": "3.14.0.1", "serial": 1234, "firmware": 2.5, "watchdog_s": 0.02,
            "velocity_threshold": 2, "gravity_compensation": False, "effector_mass_kg": 0.19,
            "max_force_n": pytest.approx(5.25),
        }  # fmt: skip
        assert (sdk.watchdog, sdk.threshold, sdk.expert) == (160, 2, False)
        assert ("dhdSetGravityCompensation", False, 0) in sdk.calls and ("dhdSetEffectorMass", 0.19, 0) in sdk.calls
        assert ("dhdConfigLinearVelocity", 10, 0, 0) in sdk.calls
        assert set(sdk.names()[sdk.names().index("dhdEnableForce") :]) == {
            "dhdEnableForce", "dhdSetForce", "dhdGetStatus", "dhdGetPosition", "dhdGetLinearVelocity",
            "dhdGetButtonMask", "dhdGetComFreq",
        }  # fmt: skip
        assert sdk.devices[0].forces and not sdk.devices[0].brakes


def test_factory_values_are_kept_by_default(monkeypatch):
    sdk = FakeSdk()
    with connected(monkeypatch, sdk) as (device, _):
        assert device.facts["velocity_threshold"] == 3
        assert {"dhdSetVelocityThreshold", "dhdSetEffectorMass"}.isdisjoint(sdk.names())
        assert sdk.watchdog == 240


def test_old_library_without_a_limit_of_the_force_is_used(monkeypatch):
    monkeypatch.delattr(FakeSdk, "_dhdSetMaxForce")
    with connected(monkeypatch, FakeSdk()) as (device, _):
        assert "max_force_n" not in device.facts


def test_device_without_a_watchdog_is_used_only_with_consent(monkeypatch):
    sdk = FakeSdk()
    sdk.results["dhdSetWatchdog"] = -1
    refused(
        monkeypatch, sdk, r"dhdSetWatchdog failed .*may have no watchdog.*device\.hardware_watchdog=0 if you accept"
    )
    with connected(monkeypatch, sdk, hardware_watchdog=0.0) as (device, _):
        assert device.facts["watchdog_s"] == 0.0


@pytest.mark.parametrize("units", [0, 255])
def test_watchdog_that_was_not_set_is_not_relied_on(monkeypatch, units):
    def keep(sdk, number, index):
        number.value = units
        return 0

    monkeypatch.setattr(FakeSdk, "_dhdGetWatchdog", keep)
    words = r"dhdSetWatchdog had no effect \(the device has 0.*hardware_watchdog=0 if you accept"
    refused(monkeypatch, FakeSdk(), words)
    with connected(monkeypatch, FakeSdk(), hardware_watchdog=0.0) as (device, _):
        assert device.facts["watchdog_s"] == units * 125e-6


def test_advice_considers_the_delay_of_the_makers_velocity():
    def lag(**settings):
        return create_device("forcedimension", settings).spec.velocity_lag

    assert lag() == 0.0
    assert lag(velocity_source="maker", maker_window=20) == pytest.approx(9.5e-3)
    assert lag(velocity_source="maker", maker_window=1) == 0.0


@pytest.mark.parametrize("name", ["dhdGetStatus", "dhdSetGravityCompensation", "dhdSetMaxForce",
                                  "dhdGetSystemType", "drdOpenID", "dhdEnableExpertMode"])  # fmt: skip
def test_failed_call_while_opening_is_named_and_leaves_nothing_on(monkeypatch, name):
    sdk = FakeSdk()
    sdk.results[name] = -1
    refused(monkeypatch, sdk, rf"forcedimension: {name} failed \(communication error\)")


def test_first_error_is_reported_if_the_forces_can_be_switched_neither_on_nor_off(monkeypatch):
    sdk = FakeSdk()
    sdk.results["dhdEnableForce"] = -1
    monkeypatch.setattr(driver, "LIBRARY", SimpleNamespace(load=lambda *_: sdk))
    with pytest.raises(DeviceOpenError, match=r"forcedimension: dhdEnableForce failed \(communication error\)\.$"):
        create_device("forcedimension", {}).open()
    assert sdk.devices[0].brakes and not sdk.devices[0].opened


def test_forces_that_come_on_late_are_waited_for_and_missing_ones_have_a_cause(monkeypatch):
    sdk = FakeSdk()
    sdk.devices[0].arms_after = 3
    with connected(monkeypatch, sdk):
        assert sdk.devices[0].forces
    monkeypatch.setattr(driver, "_ARMING", 0.02)
    sdk = FakeSdk()
    sdk.devices[0].arms_after, sdk.devices[0].cause = 1000, 1
    refused(monkeypatch, sdk, "switched the forces off: its force button was pressed")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"serial": "a1"}, r"device\.serial = 'a1': must be a serial number"),
        ({"kind": "alpha"}, r"device\.kind = 'alpha'"),
        ({"max_force": 13.0}, r"device\.max_force = 13 N: must be at most 12 N for device\.kind = 'omega'"),
        ({"hardware_watchdog": 0.04}, r"device\.hardware_watchdog = 0\.04: .*at most 0\.031875 s"),
        ({"hardware_watchdog": 0.003}, r"at least twice device\.keep_alive"),
        ({"velocity_threshold": 0.5}, r"device\.velocity_threshold"),
        ({"plane": "xx"}, r"device\.plane"),
        ({"output": "/dev/null"}, r"device\.output: no omega has a digital output"),
    ],
)
def test_wrong_setting_is_named(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        create_device("forcedimension", settings)


# --- exchange ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def sdk():
    sdk = FakeSdk()
    sdk.devices[0].opened = sdk.devices[0].forces = True
    return sdk


def test_exchange_sends_the_force_and_reads_the_sample(sdk):
    exchange = DeviceExchange(Sdk(sdk, 0), SETTINGS)
    time, *sample = exchange.exchange(0.0, (1.0, -2.0, 0.5))
    assert sdk.devices[0].force == (1.0, -2.0, 0.5)
    assert time > 0.0
    assert sample == [0.01, 0.02, 0.03, 0.1, 0.2, 0.3, 5, 0, 0, 2000.0]
    assert sdk.names().index("dhdSetForce") < sdk.names().index("dhdGetPosition"), "the sample is the newest"


def test_results_that_are_no_errors_are_counted_and_keep_the_time_of_the_reading(sdk):
    exchange = DeviceExchange(Sdk(sdk, 0), SETTINGS)
    read = exchange.exchange(0.0, (0.0, 0.0, 0.0))[0]
    sdk.results |= {"dhdGetPosition": 1, "dhdSetForce": 2}
    for _ in range(3):
        sample = exchange.exchange(0.0, (0.0, 0.0, 0.0))
    assert sample[0] == read, "a skipped reading is as old as the one before"
    assert sample[8:10] == (3, 3)
    sdk.results.clear()
    later = exchange.exchange(0.0, (0.0, 0.0, 0.0))
    assert later[0] > read and later[8:10] == (3, 3)


def test_skipped_reading_keeps_the_numbers_if_the_library_writes_none(monkeypatch, sdk):
    exchange = DeviceExchange(Sdk(sdk, 0), SETTINGS)
    before = exchange.exchange(0.0, (0.0, 0.0, 0.0))
    for name in ("_dhdGetPosition", "_dhdGetLinearVelocity"):
        monkeypatch.setattr(FakeSdk, name, lambda sdk, *_: 1)
    assert exchange.exchange(0.0, (0.0, 0.0, 0.0))[:7] == before[:7]


@pytest.mark.parametrize("name", ["dhdSetForce", "dhdGetPosition", "dhdGetLinearVelocity", "dhdGetStatus"])
def test_failed_call_ends_the_exchange(sdk, name):
    exchange = DeviceExchange(Sdk(sdk, 0), SETTINGS)
    sdk.results[name] = -1
    with pytest.raises(SdkError, match=rf"{name} failed \(communication error\)"):
        exchange.exchange(0.0, (1.0, 0.0, 0.0))


@pytest.mark.parametrize("cause", range(1, 7))
def test_forces_that_the_device_switched_off_end_the_exchange(sdk, cause):
    exchange = DeviceExchange(Sdk(sdk, 0), SETTINGS)
    exchange.exchange(0.0, (0.0, 0.0, 0.0))
    sdk.devices[0].forces, sdk.devices[0].cause = False, cause
    exchange._asked = 0.0
    with pytest.raises(SdkError, match="the device has switched the forces off: "):
        exchange.exchange(0.0, (1.0, 0.0, 0.0))


def test_rest_is_force_zero_then_off_then_brakes(sdk):
    exchange = DeviceExchange(Sdk(sdk, 0), SETTINGS)
    assert exchange.come_to_rest()
    assert sdk.calls == [("dhdSetForce", 0.0, 0.0, 0.0, 0), ("dhdEnableForce", False, 0), ("dhdSetBrakes", True, 0)]


@pytest.mark.parametrize("name", ["dhdSetForce", "dhdEnableForce", "dhdSetBrakes"])
def test_rest_tries_every_call_and_reports_the_first_error(sdk, name):
    sdk.results[name] = -1
    with pytest.raises(SdkError, match=f"{name} failed"):
        DeviceExchange(Sdk(sdk, 0), SETTINGS).come_to_rest()
    assert len(sdk.calls) == 3 + sdk.names().count("dhdErrorGetLastStr")
    assert {"dhdSetForce", "dhdEnableForce", "dhdSetBrakes"} <= set(sdk.names())


# --- digital output ---------------------------------------------------------------------------------------------------


def test_codes_of_another_process_reach_the_output_until_the_driver_closes(monkeypatch, tmp_path):
    sdk, file = FakeSdk(FakeDevice(kind=63)), tmp_path / "codes"
    requests, body = OutputRequests(file, timeout=10.0), sdk.devices[0]
    with pytest.raises(DeviceFault, match=r"code 3 was not sent in time \(the device is closed"):
        requests.set(3)
    with connected(monkeypatch, sdk, kind="delta", output=str(file)) as (_, exchange):
        assert body.output == 0, "a code from before the opening is not sent"

        def send(*codes):
            with ThreadPoolExecutor(1) as pool:
                sent = pool.submit(lambda: [requests.set(code) for code in codes])
                while not sent.done():
                    exchange.exchange(0.0, (0.0, 0.0, 0.0))
                sent.result()

        send(7, 0, 255)
        assert [call[1] for call in sdk.calls if call[0] == "dhdSetOutput"] == [0, 7, 0, 255]
        sdk.results["dhdSetOutput"] = -1
        with pytest.raises(DeviceFault, match="the device did not accept code 5"):
            send(5)
        sdk.results.clear()
    assert body.output == 0 and body.brakes
    requests.set(0)


def test_output_that_the_device_lacks_or_another_file_is_refused_before_the_motors_are_on(monkeypatch, tmp_path):
    OutputRequests(tmp_path / "codes")
    (tmp_path / "other").write_bytes(bytes(200))
    sdk = FakeSdk(FakeDevice(kind=64))
    path = str(tmp_path / "codes")
    refused(monkeypatch, sdk, "does not accept codes.*dhdSetOutput failed", kind="delta", output=path)
    for path in (str(tmp_path / "other"), str(tmp_path), "/dev/zero", str(tmp_path / "missing")):
        words = r"device\.output = .*is no file for codes"
        refused(monkeypatch, sdk, words, ConfigurationError, kind="delta", output=path)
    assert (tmp_path / "other").read_bytes() == bytes(200)
    assert not any(call[:2] == ("dhdEnableForce", True) for call in sdk.calls)


# --- per tick ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["positions", "maker"])
def test_sample_of_a_tick_is_in_the_plane(monkeypatch, sdk, source):
    sdk.devices[0].opened = False
    monkeypatch.setattr(driver, "LIBRARY", SimpleNamespace(load=lambda *_: sdk))
    device = create_device("forcedimension", {"velocity_source": source, "origin": [0.001, 0.002, 0.003]})
    with device:
        device._opened().stop()
        state = device.read()
        np.testing.assert_allclose(state.position, (0.018, -0.009))  # y to the right, x towards the person
        np.testing.assert_allclose(state.channels, (0.027, 0.0, 0.2, -0.1, 0, 0, 2000.0), atol=1e-9)
        np.testing.assert_allclose(state.velocity, (0.2, -0.1) if source == "maker" else (0.0, 0.0), atol=1e-9)
        assert state.buttons == 5
        device.write(np.array((1.0, 2.0)))
        assert device._opened().commands.read()[:3] == (-2.0, 1.0, 0.0)
