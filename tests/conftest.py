"""What every test needs: Qt without a screen, a plain word where Qt's libraries are missing, no hurry."""

from __future__ import annotations

import importlib
import os
import signal

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
