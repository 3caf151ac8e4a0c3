"""Common test configuration: Qt without a display, reproducible examples, and reruns."""

import importlib
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.apps.bench.fixtures",
    "tests.apps.screen",
    "tests.apps.view.fixtures",
    "tests.devices.fixtures",
]

# One BLAS thread per process: several test processes share the processors.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("PYQTGRAPH_QT_LIB", "PySide6")

# The same examples in every run, without a time limit. `--hypothesis-profile=search` tries new ones.
settings.register_profile(
    "same",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("search", settings.get_profile("same"), derandomize=False, max_examples=300)
settings.load_profile("same")


def _missing_qt():
    """Return the reason why Qt cannot be loaded; empty if it can."""
    try:
        importlib.import_module("PySide6.QtWidgets")
        importlib.import_module("PySide6.QtTest")
    except ImportError as error:
        return f"Qt cannot be loaded ({error}); './run test' names the missing packages"
    return ""


MISSING_QT = _missing_qt()


def pytest_configure(config):
    """Handle SIGINT in the tests and their child processes, because background jobs of a shell ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Rerun failed tests marked `wall_clock` up to twice."""
    for item in items:
        if item.get_closest_marker("wall_clock"):
            item.add_marker(pytest.mark.flaky(reruns=2))


def pytest_terminal_summary(terminalreporter):
    """Print the failures that preceded a rerun, so that a rerun does not hide its cause."""
    reruns = terminalreporter.getreports("rerun")
    if reruns:
        terminalreporter.section("failures before a rerun")
    for report in reruns:
        terminalreporter.write_line(f"{report.nodeid}\n{report.longreprtext}")


def pytest_addoption(pluginmanager):
    """Unregister pytest-qt if Qt cannot be loaded, because it would abort the whole run."""
    if MISSING_QT:
        pluginmanager.unregister(name="pytest-qt")


if MISSING_QT:

    @pytest.fixture
    def qtbot():
        """Skip the test, which needs Qt."""
        pytest.skip(MISSING_QT)

    @pytest.fixture
    def qapp():
        """Skip the test, which needs Qt."""
        pytest.skip(MISSING_QT)


@pytest.fixture
def trace(tmp_path):
    """Return an empty trace."""
    from haptics.trace import Trace

    return Trace.create(tmp_path / "trace")
