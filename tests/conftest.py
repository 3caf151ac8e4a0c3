"""What every test needs: Qt without a screen, a plain word where Qt's libraries are missing, no hurry."""

from __future__ import annotations

import importlib
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent

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
)
"""Tests, by the beginning of their path, in which programs keep step with the wall's clock or answer in time. Where the
suite runs in several processes, they run in one of them, one after the other."""


@pytest.hookimpl(tryfirst=True)  # before the distribution looks at the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Say which tests have to stay in one process: those of a file, and those that keep step."""
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        path = item.path.relative_to(TESTS).as_posix()
        item.add_marker(pytest.mark.xdist_group("in step" if path.startswith(KEEP_STEP) else path))


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
