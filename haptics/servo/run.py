"""Recorded and monitored run in a servo process, controlled by the application."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import wait
from typing import Any, NoReturn, TypeVar

from haptics.errors import DeviceFault, HapticError, ServoLost
from haptics.recording.recorder import FAULT, Recorder, RunCloser, not_written
from haptics.servo.control import Job
from haptics.servo.process import ServoProcess
from haptics.servo.servo import EndReason
from haptics.servo.standby import Standby
from haptics.trace import Reader

# --- threads and watchdog ---------------------------------------------------------------------------------------------

RECORD_INTERVAL = 0.02
"""Interval between writes of the trace to disk [s]; limits the data lost if the application is killed."""

_OFFLINE_RECORD_INTERVAL = 5e-4  # the same for a run in simulated time [s], which waits for the recorder

FREEZE_TIMEOUT = 1.0
"""Time without a tick after which a servo counts as lost [s]."""


_MAX_CHECK_INTERVAL = 0.05  # upper bound of the time counted between two checks [s]


class ServoWatchdog:
    """Watchdog for a servo process that was stopped or no longer ticks.

    Only time in which this process was running counts: after the machine was suspended, or a hypervisor ran another
    guest, the servo may still continue.
    """

    def __init__(self) -> None:
        self._ticks = 0
        self._looked = time.monotonic()
        self._waited = 0.0

    def check(self, servo: ServoProcess, *, started: bool) -> None:
        """Check the servo; before it has `started`, the time without ticks is not limited.

        Raises
        ------
        ServoLost
            If the servo was stopped or has not ticked for `FREEZE_TIMEOUT` seconds. The process has been killed, so
            that it cannot resume and command the device; the device then depends on its own watchdog.
        """
        now, ticks = time.monotonic(), servo.trace.count
        if servo.halted:
            self._end(servo, "was stopped from outside")
        passed, self._looked = min(now - self._looked, _MAX_CHECK_INTERVAL), now
        if ticks != self._ticks or not started:
            self._ticks, self._waited = ticks, 0.0
            return
        self._waited += passed
        if self._waited > FREEZE_TIMEOUT:
            self._end(servo, f"has not run for {FREEZE_TIMEOUT:g} s (its device blocks, or the machine was too busy)")

    @staticmethod
    def _end(servo: ServoProcess, label: str) -> NoReturn:
        servo.kill()
        raise ServoLost(f"the servo process {label} and was ended {servo.progress_phrase}.")


# --- run --------------------------------------------------------------------------------------------------------------

HEARTBEAT_INTERVAL = 0.01
"""Maximum interval between heartbeats [s]."""

INTERRUPTED = "interrupted"

_T = TypeVar("_T")

ExtraConnections = Callable[[], Iterable[Any]]
"""Function that returns further connections to wait for."""


class StartCancelled(KeyboardInterrupt):
    """The run was cancelled before its device was open."""


class Run:
    """A servo process and its recording; subclasses override the hooks for their own tasks.

    Parameters
    ----------
    recorder : Recorder
        Recorder of the run.
    job : Job
        Job of the servo.
    device : str
        Name of the device in messages.
    notify : callable
        Displays a line to the user.
    standby : Standby, optional
        Process that waits for the job.

    Attributes
    ----------
    servo : ServoProcess
        Handle of the servo process.
    ending : RunCloser
        Fault of the run, and the end of its recording.
    stopping : bool
        Whether the end was requested.
    preparing : Event
        Set until the servo has compiled all kernels and is about to open its device. After that, this process must not
        start work that can wait.
    opening, opened : bool
        Whether the device may have been accessed, and whether it has been opened.
    granted : dict
        Resources granted to the servo by the operating system.
    """

    def __init__(
        self, recorder: Recorder, job: Job, device: str, notify: Callable[[str], None], standby: Standby | None = None
    ) -> None:
        self.recorder, self._device, self._notify = recorder, device, notify
        self.servo = ServoProcess(job, standby)
        recorder.attach(Reader(self.servo.trace))
        self.ending = RunCloser(recorder, self.servo.trace, notify)
        self.stopping = self.opening = self.opened = False
        self.preparing = threading.Event()
        self.preparing.set()
        self.granted: dict[str, Any] = {}

    # --- hooks for subclasses -----------------------------------------------------------------------------------------

    def prepared(self, stage: str, facts: Any) -> None:
        """Handle progress messages of the servo before the first tick (`ServoProcess.next_message`).

        By default, only instructions to the person at the device are shown.
        """
        if stage == "instruction" and facts:
            self._notify(facts)

    def run_periodic_tasks(self) -> None:
        """Execute periodic tasks between two heartbeats."""

    def reason(self, end: EndReason) -> str:
        """Return the reason for the end of a run without a fault; `end` is the reason reported by the servo."""
        return str(end)

    def on_end(self) -> None:
        """Handle the end of the servo's run, also after a fault."""

    # --- end of the run -----------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the run regularly."""
        self.stopping = True
        self.servo.stop()

    def fail(self, fault: HapticError) -> None:
        """End the run because of a fault outside the servo; the first fault is the fault of the run."""
        self.ending.fail(fault)
        self.stop()

    def not_written(self, error: OSError) -> None:
        """End the run because the recording cannot be written, so that no data are lost silently."""
        self.fail(not_written(error, "the run was stopped"))

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """End the run regularly if its recording cannot be written."""
        try:
            yield
        except OSError as error:
            self.not_written(error)

    def run_with_heartbeats(self, work: Callable[[], _T]) -> _T:
        """Execute `work` in a thread with heartbeats to the servo, and return its result.

        Slow work, such as the compilation of a custom law, must not trigger the servo's watchdog.
        """
        with ThreadPoolExecutor(1, "haptics meanwhile") as pool:
            doing = pool.submit(work)
            while True:
                self.servo.beat()
                try:
                    return doing.result(HEARTBEAT_INTERVAL)
                except TimeoutError:
                    if doing.done():  # raised by the work
                        raise

    # --- course of the run --------------------------------------------------------------------------------------------

    def follow(self, listen: ExtraConnections = tuple) -> str:
        """Run to the end and return the reason for the end without a fault.

        Faults after the opening of the device are in `ending`.

        Raises
        ------
        HapticError
            If the device could not be opened.
        StartCancelled
            If the run was cancelled before the device was opened. In both cases the recording is deleted, unless the
            servo was lost.
        """
        try:
            reason = self._run_recorded(listen)
            if self.ending.fault is not None and not self.opened:
                raise self.ending.fault
            return reason
        except BaseException:
            if not self.opened and not self.ending.servo_lost:
                shutil.rmtree(self.recorder.folder, ignore_errors=True)
            raise

    def _run_recorded(self, listen: ExtraConnections) -> str:
        """Run to the end with the recorder thread, and close the recording."""
        finished = threading.Event()
        recording = threading.Thread(target=self._record, args=(finished,), name="haptics recorder", daemon=True)
        recording.start()
        with contextlib.ExitStack() as servo:
            servo.callback(self.servo.close)
            try:
                reason = self._run_servo(listen)
                if self.ending.servo_lost:
                    servo.close()  # it may have executed another tick until it was killed
                finished.set()
                recording.join()
                # The servo is dismissed only then: until the recording is closed it must be able to complete the
                # recording.
                self.ending.close(reason, complete=self.opened)
                return reason
            except BaseException:
                servo.close()
                finished.set()
                recording.join()
                self.ending.close(INTERRUPTED, complete=False)
                raise

    def _record(self, finished: threading.Event) -> None:
        """Write the trace to disk until `finished` is set, then once more."""
        every = RECORD_INTERVAL if self.servo.job.live else _OFFLINE_RECORD_INTERVAL
        try:
            while not finished.wait(every):
                self.recorder.drain()
                self.servo.report_recorded(self.recorder.count)
            self.recorder.drain()
        except OSError as error:
            self.not_written(error)

    def _run_servo(self, listen: ExtraConnections) -> str:
        """Run the servo to its end; return the reason for the end without a fault."""
        end, watch = None, ServoWatchdog()
        try:
            self.servo.start()
            while end is None:
                end = self.wait_and_handle(watch, listen)
            reason = self.reason(end)
            if not self.opened:
                raise StartCancelled
            return reason
        except ServoLost as error:
            self.ending.fail(ServoLost(f"{self._device} lost its servo: {error}", error.rows))
        except HapticError as error:
            self.ending.fail(error)
        finally:
            self.on_end()
        return FAULT

    def wait_and_handle(self, watch: ServoWatchdog, listen: ExtraConnections) -> EndReason | None:
        """Send a heartbeat, process a message and periodic tasks; return the reason for the end, if any."""
        stopping = self.stopping
        self.servo.beat()
        wait([self.servo.connection, *listen()], HEARTBEAT_INTERVAL)
        message = self.servo.next_message()
        match message:
            case ("compiling" | "compiled" | "opening" | "instruction" | "ready") as stage, facts:
                self.prepared(stage, facts)
                if stage == "compiled":
                    self.preparing.clear()
                self.opening |= stage == "opening"
                if stage == "ready":
                    self.opened, self.granted = True, facts
                    with self.writing():
                        self.recorder.update_metadata(real_time=facts)
            case "device", facts:
                with self.writing():
                    self.recorder.update_metadata(device_facts=facts)
            case "ended", end:
                return self._checked_end(EndReason(end))
            case None if stopping and not (self.opened or self.opening):
                self.servo.kill()  # it is only compiling, and checks for a stop before it opens the device
                return EndReason.STOPPED
        watch.check(self.servo, started=self.opened and not self.servo.pausing)
        self.run_periodic_tasks()
        return None

    def _checked_end(self, end: EndReason) -> EndReason:
        """Return the reason for the end; raise `DeviceFault` if this process did not request it."""
        where = f"{self._device} was brought to its safe output after tick {self.servo.newest_tick}"
        if end is EndReason.STOPPED and not self.stopping:
            raise DeviceFault(f"{where}: another program terminated the servo process.")
        if end is EndReason.APPLICATION_LOST:
            raise DeviceFault(f"{where}: {self.servo.loss}. Start again.")
        return end
