"""The callback in the maker's servo loop, called by hand in front of a small library that notes the calls."""

import ctypes
import subprocess
import time

import numpy as np
import pytest

from devices.common.latch import Latch
from devices.emulators.native.compiler import find_compiler
from devices.touch import callback
from devices.touch.callback import CHECK, DISABLE, ENABLE, FUNCTIONS, LOOP, UPDATE, serve
from devices.touch.hdapi import CALLBACK, CONTINUE, ERRORS, explain
from haptics.jit import compile_callback

pytestmark = pytest.mark.skipif(not find_compiler(), reason="no C compiler")

SOURCE = r"""
#include <string.h>
typedef struct { unsigned code; int internal; unsigned handle; } error;
error stack[64];
int count, on, in_frame, outside, style, fails;
double position[3] = {10.0, -20.0, 30.0}, temperature[6], force[3], sent[3];
unsigned begun, calibration = 0x5000;
int buttons;
static void inside(void) { outside += !in_frame; }
void push(unsigned code, int internal, unsigned handle) { stack[count++] = (error){code, internal, handle}; }
void hdBeginFrame(unsigned device) { begun = device; in_frame = 1; memset(force, 0, sizeof force); }
void hdEndFrame(unsigned device) { in_frame = 0; memcpy(sent, force, sizeof sent); outside += device != begun; }
error hdGetError(void) { return count ? stack[--count] : (error){0, 77, 99}; }
void hdGetDoublev(unsigned name, double *values)
{
    inside();
    if (name == 0x2050 && !fails)
        memcpy(values, position, sizeof position);
    if (name == 0x2605)
        memcpy(values, temperature, sizeof temperature);
}
void hdGetIntegerv(unsigned name, int *value) { inside(); *value = name == 0x2000 ? buttons : -1; }
void hdSetDoublev(unsigned name, const double *values) { inside(); memcpy(force, values, name == 0x2700 ? 24 : 0); }
void hdEnable(unsigned name) { on = name == 0x4000; }
void hdDisable(unsigned name) { on = on && name != 0x4000; }
unsigned char hdIsEnabled(unsigned name) { return on && name == 0x4000; }
unsigned hdCheckCalibration(void) { inside(); return calibration; }
void hdUpdateCalibration(unsigned wanted) { inside(); style = wanted; calibration = 0x5000; }
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    (folder / "noting.c").write_text(SOURCE)
    command = [*find_compiler(), "-shared", "-fPIC", "-o", str(folder / "noting.so"), str(folder / "noting.c")]
    subprocess.run(command, check=True)
    return folder / "noting.so"


@pytest.fixture
def library(compiled, tmp_path):
    (tmp_path / "own.so").write_bytes(compiled.read_bytes())  # the loader shares the state of one file
    return ctypes.CDLL(str(tmp_path / "own.so"))


class Device:
    """A device in the servo loop, whose callback is called by `tick`."""

    def __init__(self, library, handle=5, motors=3):
        self.library = library
        address, self._kept = compile_callback(serve)
        self._serve = CALLBACK(address)
        self.samples, self.commands, self.lost = Latch(1 + callback.SAMPLE_SIZE), Latch(4), np.zeros(1)
        self.record = np.zeros(1, LOOP)
        self.place = self.record.ctypes.data
        for field, name in FUNCTIONS.items():
            self.record[field] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        self.record["samples"], self.record["commands"] = self.samples.place, self.commands.place
        self.record["lost"], self.record["next"], self.record["handle"] = self.lost.ctypes.data, self.place, handle
        self.record["motors"], self.record["watchdog"] = motors, 0.1

    def command(self, x, y, z, age=0.0):
        self.commands.publish(x, y, z, time.perf_counter() - age)

    def tick(self):
        """Call the callback; return the force that was sent [N]."""
        assert self._serve(self.place) == CONTINUE
        return self.array("sent", 3)

    def array(self, name, size):
        return list((ctypes.c_double * size).in_dll(self.library, name))

    def number(self, name):
        return ctypes.c_int.in_dll(self.library, name)

    def __getitem__(self, name):
        return int(self.record[name][0])


@pytest.fixture
def device(library):
    return Device(library)


def test_frame_exchanges_command_and_sample_in_si_units(device):
    device.number("buttons").value = 3
    (ctypes.c_double * 6).in_dll(device.library, "temperature")[:3] = 0.1, 0.4, 0.2
    device.command(1.0, -2.0, 0.5)
    before = time.perf_counter()
    assert device.tick() == [1.0, -2.0, 0.5]
    when, *sample = device.samples.read()
    assert before <= when <= time.perf_counter()
    assert sample == pytest.approx([0.01, -0.02, 0.03, 3.0, 0.4])
    assert device.number("outside").value == 0, "all state is read and set within the frame of the device"
    assert ctypes.c_uint.in_dll(device.library, "begun").value == 5
    assert device["rounds"] == 1


def test_temperature_is_read_only_if_the_model_has_it(library):
    (ctypes.c_double * 6).in_dll(library, "temperature")[:3] = 0.1, 0.4, 0.2
    device = Device(library, motors=0)
    device.tick()
    assert device.samples.read()[5] == 0.0


def test_failed_reading_is_no_zero(device):
    device.number("fails").value = 1
    device.tick()
    assert np.isnan(device.samples.read()[1:4]).all()


@pytest.mark.parametrize("cause", ["none", "expired", "hold", "time"])
def test_force_is_zero_without_a_valid_command(device, cause):
    if cause != "none":
        device.command(1.0, 1.0, 1.0)
        assert any(device.tick())
        device.command(1.0, 1.0, 1.0, age={"expired": 0.2, "time": np.nan}.get(cause, 0.0))
        device.record["hold"][0, 1] = cause == "hold"
    assert device.tick() == [0.0, 0.0, 0.0]
    device.tick()
    assert device["rested"] == 2
    device.record["hold"] = 0
    device.command(0.0, 0.0, 1.0)
    assert device.tick() == [0.0, 0.0, 1.0] and device["rested"] == 0


@pytest.mark.parametrize("code", [0x0200, 0x0203, 0x0302])
def test_error_switches_the_motors_off_in_the_same_tick_and_keeps_its_numbers(device, code):
    device.number("on").value = 1
    device.command(1.0, 0.0, 0.0)
    device.tick()
    old = device.samples.read()
    device.library.push(0x0300, 8, 5)
    device.library.push(code, -42, 5)  # the stack returns the newest first
    device.command(1.0, 0.0, 0.0)
    device.tick()
    assert device.number("on").value == 0 and device.lost[0] == 1.0
    assert (device["error"], device["internal"]) == (code, -42)
    assert device.samples.read() == old, "no sample after an error"
    device.command(1.0, 0.0, 0.0)
    assert device.tick() == [0.0, 0.0, 0.0]
    assert device["rested"] == 1 and device["error"] == code


def test_zero_force_is_confirmed_after_errors_of_the_force_but_not_of_the_device(device):
    device.record["hold"] = 1
    device.library.push(0x0200, 0, 5)
    device.tick()
    assert device["rested"] == 1
    device.library.push(0x0302, 0, 5)
    device.tick()
    assert device["rested"] == 0
    device.tick()
    assert device["rested"] == 1


def test_errors_are_those_of_the_device_that_had_them(library):
    devices = [Device(library, handle) for handle in (5, 6, 7)]
    for k, one in enumerate(devices):
        one.record["next"] = devices[(k + 1) % 3].place
    library.push(0x0203, 1, 7)
    library.push(0x0300, 2, 6)
    devices[0].tick()  # finds the errors of the others
    assert [one["error"] for one in devices] == [0, 0x0300, 0x0203]
    assert [one.lost[0] for one in devices] == [0.0, 0.0, 0.0]
    for one in devices[1:]:
        one.command(1.0, 0.0, 0.0)
        assert one.tick() == [0.0, 0.0, 0.0] and one.lost[0] == 1.0
    library.push(0x0304, 3, 0xFFFFFFFF)
    devices[0].tick()
    assert devices[0]["error"] == 0x0304, "an error of no device is that of the present one"


def test_many_errors_do_not_block_the_loop(device):
    for _ in range(60):
        device.library.push(0x0402, 0, 5)
    device.tick()
    assert 0 < device.number("count").value < 60


def test_requests_are_performed_within_the_frame(device):
    def request(kind, argument=0):
        device.record["argument"], device.record["request"] = argument, kind
        device.tick()
        assert device["request"] == 0
        return device["answer"]

    ctypes.c_uint.in_dll(device.library, "calibration").value = 0x5001
    assert request(CHECK) == 0x5001
    request(UPDATE, 4)
    assert device.number("style").value == 4
    assert request(CHECK) == 0x5000
    assert request(ENABLE) == 1 and device.number("on").value == 1
    assert request(DISABLE) == 0 and device.number("on").value == 0
    assert device.number("outside").value == 0


def test_every_error_has_words_and_an_unknown_one_its_number():
    assert all(explain(code, -3).startswith(words) for code, words in ERRORS.items())
    assert explain(0x0999, -3) == "the library reports an unknown error (error 0x0999, internal -3)"
