"""The package in examples/plugin, built and installed with pip, with its device and laws."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import devices
from haptics.clock import Clock
from tests.contract import DeviceContract
from tests.plugins import forget
from tests.processes import ROOT
from tests.system.parallel.commands import haptics


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return a folder with the installed package."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    source = ROOT / "examples" / "plugin"
    subprocess.run([*pip, "--target", str(folder), str(source)], check=True, capture_output=True, text=True)
    return folder


class TestPuck(DeviceContract):
    name = "puck"

    @pytest.fixture(autouse=True)
    def _installed(self, site, monkeypatch):
        monkeypatch.syspath_prepend(str(site))
        forget()
        yield
        forget()

    def test_is_that_of_its_package(self):
        assert devices.BACKENDS["puck"].package == "haptics-puck 0.1.0"
        assert devices.refused_plugins() == ()

    def test_goes_where_it_is_pushed(self, monkeypatch):
        clock = Clock(1e-3)
        device = self.make(clock, strength=0.5)
        maker = importlib.import_module("haptics_puck.maker")
        monkeypatch.setattr(maker, "time", SimpleNamespace(perf_counter=clock.elapsed))
        device.open()
        start = device.read().position[1]
        for tick in range(1, 101):
            clock.wait(tick)
            device.write(np.array((0.0, -3.0)))
            state = device.read()
        device.close()
        assert state.position[1] < start - 1e-3
        assert state.velocity[1] < 0.0
        assert device.spec.max_force == 3.0


def with_package(*arguments, site, **options):
    """Run a command with or without the package installed; return its answer."""
    path = os.pathsep.join(map(str, filter(None, (site, ROOT))))
    return json.loads(haptics(*arguments, "--json", path=path, **options).stdout)


def test_a_recording_with_its_device_and_its_function_is_replayed_without_the_package(site, tmp_path):
    settings = ("--device", "puck", "--duration", "0.6", "--set", "law.name=felt", "--set", "law.static=0.4")
    run = with_package("run", "--headless", "--record", str(tmp_path), *settings, folder=tmp_path, site=site)
    assert (run["device"], run["reason"]) == ("puck", "completed")
    facts = json.loads((Path(run["recording"]) / "recording.json").read_text())
    assert facts["device_package"] == "haptics-puck 0.1.0"
    with_it = with_package("replay", "--verify", run["recording"], folder=tmp_path, site=site)
    assert (with_it["mismatches"], with_it["verdict"]) == (0, "ok")
    without = with_package("replay", "--verify", run["recording"], folder=tmp_path, site=None, status=1)
    assert (without["ticks"], without["mismatches"], without["verdict"]) == (run["ticks"], 0, "incomplete")
    (finding,) = without["findings"]
    assert finding["words"] == (
        "the device 'puck' belongs to the package 'haptics-puck 0.1.0', which is not installed here."
    )


def test_a_recording_with_its_class_of_a_law_says_which_package_is_missing(site, tmp_path):
    settings = ("--device", "virtual-joystick", "--clock", "off", "--duration", "2", "--set", "law.name=two-levels")
    run = with_package("run", "--headless", "--record", str(tmp_path), *settings, folder=tmp_path, site=site)
    assert 0.0 < run["stick_fraction"] < 1.0
    with_it = with_package("replay", "--verify", run["recording"], folder=tmp_path, site=site)
    assert (with_it["mismatches"], with_it["verdict"]) == (0, "ok")
    said = with_package("replay", "--verify", run["recording"], folder=tmp_path, site=None, status=2)
    words = "its law 'two-levels' belongs to the package 'haptics-puck 0.1.0', which is not installed here; install it"
    assert words in said["error"]
    (site / "haptics_puck-0.1.0.dist-info" / "METADATA").write_text("Name: haptics-puck\nVersion: 0.2.0\n")
    newer = with_package("replay", "--verify", run["recording"], folder=tmp_path, site=site)
    assert (newer["mismatches"], newer["verdict"]) == (0, "ok")
    assert any("'haptics-puck 0.1.0', here 'haptics-puck 0.2.0'" in one["words"] for one in newer["findings"])
