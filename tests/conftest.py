"""What every test needs: Qt without a screen, a plain word where Qt's libraries are missing, no hurry."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.stalls import REPETITIONS, Meanwhile, Stalls, StallWatcher, excusing
from tests.tracebacks import give_lines

# Where several processes share the processors, threads that compute for one of them wait for each other busily.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("PYQTGRAPH_QT_LIB", "PySide6")

# The same examples in every run and on every machine, so that a run is green or red and stays so. A busy machine is no
# reason to fail: examples may take their time. ``--all`` takes more of them, ``--search`` looks for new ones.
settings.register_profile(
    "few",
    parent=settings.default,
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=12,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("all", parent=settings.get_profile("few"), max_examples=30)
settings.register_profile("search", parent=settings.get_profile("few"), derandomize=False, max_examples=300)
settings.load_profile(os.environ.get("HAPTICS_EXAMPLES", "few"))
# Hypothesis also tries the numbers that it finds in the modules that happen to be imported: other examples in every
# order and division of the tests.
providers.is_local_module_file = lambda path: False


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
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker == IN_STEP:
        with contextlib.suppress(PermissionError):
            os.nice(MORE_URGENT)
    elif worker:
        os.nice(LESS_URGENT)
    if worker:
        gc.disable()  # until the tests are collected: nothing of them is garbage


KEEP_STEP = (
    "apps/test_arm_processes.py",
    "apps/test_fault_processes.py",
    "apps/test_kills.py",
    "apps/view",
    "calibration/joystick",
    "devices/arm/test_odrive_client",
    "devices/arm/test_odrive_killed",
    "devices/arm/test_optoforce",
    "devices/arm/test_rdt",
    "devices/inverse3",
    "devices/joystick",
    "devices/pantograph",
    "haptics/servo/test_process.py",
    "haptics/servo/test_servo",
    "usb",
)
"""Tests, by the beginning of their path, in which programs keep step with the wall's clock or answer in time. Where the
suite runs in several processes, they run in one of them, one after the other."""

IN_STEP = "gw0"
"""The process in which they do (a name of pytest-xdist); they are the first thing it does."""

MORE_URGENT, LESS_URGENT = -10, 5
"""The niceness of that process, where it is allowed, and of the others. Other sessions on the machine lose nothing."""

SELDOM = 50_000, 20, 20
"""When garbage is collected (`gc.set_threshold`)."""

BY_THE_CLOCK = (
    *KEEP_STEP,
    *("apps/bench", "apps/calibrate", "apps/doctor", "apps/experiment", "apps/front_ends", "apps/gallery/test_live"),
    *("apps/session", "apps/stage", "apps/stream", "apps/sweep", "apps/test_cli", "apps/test_faults"),
    *("apps/test_live_session", "apps/test_stage_session", "apps/test_two_windows", "apps/test_workers"),
    *("calibration/motions/test_live", "devices/arm", "devices/common/bus/test_guarding", "devices/emulated"),
    *("devices/emulators", "devices/faults", "devices/virtual/test_compiled_hands", "haptics/recording/test_recording"),
    *("haptics/friction/test_custom_law_travel", "haptics/servo", "haptics/test_shared", "haptics/test_trace"),
    *("test_documents", "test_examples", "test_plugin_example"),
)
"""Tests, likewise, of whole programs, or of devices whose far ends have threads or processes of their own: they are
repeated as those that guard a promise in wall-clock time are, but in the end they are judged."""

EACH_ALONE = ("test_documents.py",)
"""Tests, likewise, of which each takes long and none needs another: they are divided among the processes."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Spare the garbage collector what has been imported, which it would look through again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*SELDOM)
    gc.enable()


# --- what of a test is left to the second stage ----------------------------------------------------------------------


def leave_to_the_second_stage(items: list[pytest.Item]) -> None:
    """Mark the examples of each test marked ``few(n)`` as slow, all but n from its whole range, the last one too."""
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("few") and not item.get_closest_marker("slow"):
            families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for family in families.values():
        mark = family[0].get_closest_marker("few")
        number = mark.args[0] if mark else 0
        kept = {k * (len(family) - 1) // max(number - 1, 1) for k in range(number)}
        for k, item in enumerate(family):
            if k not in kept:
                item.add_marker(pytest.mark.slow)


# --- what runs by the wall's clock --------------------------------------------------------------------------------

_WATCHER = pytest.StashKey[StallWatcher]()
_STALLS = pytest.StashKey[Stalls]()
_MEANWHILE = pytest.StashKey[Meanwhile]()
_AGAIN = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)  # before those that are marked as slow are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave most examples of a test marked ``few`` to the second stage; let those that run by the clock be repeated."""
    leave_to_the_second_stage(items)
    for item in items:
        if _runs_by_the_clock(item):
            item.add_marker(pytest.mark.flaky(reruns=REPETITIONS, condition=functools.partial(_excused, item)))


def _runs_by_the_clock(item: pytest.Item) -> bool:
    named = item.nodeid.removeprefix("tests/").startswith(BY_THE_CLOCK)
    return named or item.get_closest_marker("wall_clock") is not None


def _excused(item: pytest.Item, error: object) -> bool:
    return bool(item.stash[_MEANWHILE].excuse())


def _watched(config: pytest.Config) -> str:
    """Return the file of the watchers, which begin here if they have not."""
    if _WATCHER not in config.stash:
        config.stash[_WATCHER] = StallWatcher()
    return config.stash[_WATCHER].path


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_configure_node(node: Any) -> None:
    """Have one set of watchers for all processes."""
    node.workerinput["stalls"] = _watched(node.config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Watch machine and threads meanwhile, and collect no garbage, as the servo does not.

    A process that has run many tests looks through its objects for half a second. All its threads stand still, and the
    watcher does not see it.
    """
    if not _runs_by_the_clock(item):
        return (yield)
    if _STALLS not in item.config.stash:
        shared = getattr(item.config, "workerinput", {}).get("stalls")
        item.config.stash[_STALLS] = Stalls(shared or _watched(item.config))
    item.stash[_MEANWHILE] = Meanwhile(item.config.stash[_STALLS])
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        item.stash[_MEANWHILE].close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Write into the report of a test that runs by the clock what kept it from running in step."""
    if call.excinfo and give_lines(call.excinfo.value):
        call.excinfo = pytest.ExceptionInfo.from_exception(call.excinfo.value)
    report = yield
    if _runs_by_the_clock(item):
        meanwhile = item.stash[_MEANWHILE]
        if report.when == "setup":
            meanwhile.begin()  # afresh, if it is a repetition
            item.stash[_AGAIN] = False
        meanwhile.look()
        report.user_properties.append(("excuse", meanwhile.excuse()))
        if report.failed and meanwhile.excuse():
            item.stash[_AGAIN] = True
        error = call.excinfo.value if call.excinfo else None
        repeated = getattr(item, "execution_count", 1) > REPETITIONS
        hopeless = item.get_closest_marker("wall_clock") and meanwhile.stall > excusing(error)
        if report.failed and repeated and hopeless:
            _give_up_judging(item, report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Make what is made once for a file or a class afresh, for a test that is repeated: it may hold what failed."""
    result = yield
    if item.stash.get(_AGAIN, False):
        request = getattr(item, "_request")  # noqa: B009 - pytest has no public way to it
        for fixture in reversed(request._fixture_defs.values()):
            if fixture.scope in ("class", "module"):
                fixture.finish(request)
    return result


def _said(report: pytest.TestReport) -> str:
    """Return in a line why a test failed; of a program's traceback, its end."""
    message = getattr(getattr(report.longrepr, "reprcrash", None), "message", "").rstrip()
    return message.rpartition("\n")[2] if "Traceback" in message.partition("\n")[0] else message.partition("\n")[0]


def _give_up_judging(item: pytest.Item, report: pytest.TestReport) -> None:
    """Make of a failure a test that was skipped: the machine stood still every time, so nothing can be said."""
    path, line, _ = item.location
    said = _said(report)
    reason = f"cannot be judged here: {1 + REPETITIONS} times the machine stood still, lately for"
    report.outcome = "skipped"
    report.longrepr = (path, line or 0, f"Skipped: {reason} {1e3 * item.stash[_MEANWHILE].stall:.0f} ms ({said})")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name every test that was repeated, and why."""
    repeated = terminalreporter.getreports("rerun")
    if repeated:
        terminalreporter.section("repeated, because something kept them from running in step")
    for report in repeated:
        excuse = dict(report.user_properties)["excuse"]
        terminalreporter.write_line(f"{report.nodeid}: {excuse}; it had said: {_said(report)}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the watcher."""
    if _WATCHER in config.stash:
        config.stash[_WATCHER].close()


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep together, where there are several processes, the tests of a file and all that keep step."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            name = path.removeprefix("tests/")
            return "in step" if name.startswith(KEEP_STEP) else nodeid if name.startswith(EACH_ALONE) else path

        def _assign_work_unit(self, node: Any) -> None:
            if node.gateway.id == IN_STEP and "in step" in self.workqueue:
                self.workqueue.move_to_end("in step", last=False)
            super()._assign_work_unit(node)

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
