"""What every test needs: Qt without a screen, a plain word where Qt's libraries are missing, no hurry."""

from __future__ import annotations

import importlib
import os
import signal
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("PYQTGRAPH_QT_LIB", "PySide6")

# A busy machine is no reason to fail: examples may take their time.
settings.register_profile(
    "patient", parent=settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")


def _why_no_qt() -> str:
    try:
        importlib.import_module("PySide6.QtWidgets")
        importlib.import_module("PySide6.QtTest")
    except ImportError as error:
        return f"Qt cannot be loaded here ({error}); ./run test says what to install"
    return ""


WHY_NO_QT = _why_no_qt()


def pytest_configure(config: pytest.Config) -> None:
    """Hear interrupts, and let the programs that are started hear them: the background of a shell ignores them."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


KEEP_STEP = (
    "apps/test_arm_processes.py",
    "apps/test_fault_processes.py",
    "apps/test_kills.py",
    "apps/view",
    "calibration/test_joystick",
    "devices/arm/test_arm_device",
    "devices/arm/test_odrive",
    "devices/arm/test_optoforce",
    "devices/arm/test_rdt",
    "devices/joystick",
    "devices/pantograph",
    "haptics/test_process.py",
    "haptics/test_servo",
    "usb",
)
"""Tests, by the beginning of their path, in which programs keep step with the wall's clock or answer in time. Where the
suite runs in several processes, they run in one of them, one after the other."""


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep together, where there are several processes, the tests of a file and all that keep step."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return "in step" if path.removeprefix("tests/").startswith(KEEP_STEP) else path

    return ByFile(config, log)


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Take pytest-qt out where it would stop the whole run; this hook is the last moment at which that works."""
    if WHY_NO_QT:
        pluginmanager.unregister(name="pytest-qt")


if WHY_NO_QT:

    @pytest.fixture
    def qtbot() -> None:
        """Stand in for pytest-qt's fixture."""
        pytest.skip(WHY_NO_QT)

    @pytest.fixture
    def qapp() -> None:
        """Stand in for pytest-qt's fixture."""
        pytest.skip(WHY_NO_QT)
