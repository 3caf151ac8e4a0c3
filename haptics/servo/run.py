"""Recorded and monitored run in a servo process, controlled by the application."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import wait
from typing import Any, TypeVar

from haptics.errors import DeviceFault, HapticError, ServoLost
from haptics.recording.ending import FAULT, Ending, not_written
from haptics.recording.recorder import Recorder
from haptics.servo.background import RECORD_AT_ONCE, RECORD_EVERY, Background, FrozenWatch
from haptics.servo.job import SILENCE, Job
from haptics.servo.loop import End
from haptics.servo.process import ServoProcess
from haptics.servo.standby import Standby
from haptics.trace import Reader

HEARTBEAT_EVERY = 0.01
"""Maximum interval between heartbeats [s]."""

INTERRUPTED = "interrupted"

_T = TypeVar("_T")

Listen = Callable[[], Iterable[Any]]
"""Function that returns further connections to wait for."""


class NeverStarted(KeyboardInterrupt):
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
    tell : callable
        Displays a line to the user.
    standby : Standby, optional
        Process that waits for the job.

    Attributes
    ----------
    servo : ServoProcess
        Handle of the servo process.
    ending : Ending
        Fault of the run.
    stopping : bool
        Whether the end was requested.
    preparing : Event
        Set until the servo has compiled all kernels and is about to open its device. After that, this process must not
        start work that can wait.
    opening, opened : bool
        Whether the device may have been accessed, and whether it has been opened.
    granted : dict
        Resources granted to the servo by the operating system.
    me : str
        Name of this side in messages.
    """

    me = "this process"

    def __init__(
        self,
        recorder: Recorder,
        job: Job,
        device: str,
        tell: Callable[[str], None],
        standby: Standby | None = None,
    ) -> None:
        self.recorder, self._device = recorder, device
        self.servo = ServoProcess(job, standby)
        recorder.follow(Reader(self.servo.trace))
        self.ending = Ending(recorder, self.servo.trace, tell)
        self.stopping = self.opening = self.opened = False
        self.preparing = threading.Event()
        self.preparing.set()
        self.granted: dict[str, Any] = {}

    # --- hooks for subclasses -----------------------------------------------------------------------------------------

    def prepared(self, stage: str, facts: Any) -> None:
        """Handle progress messages of the servo before the first tick (`ServoProcess.next_message`)."""

    def attend(self) -> None:
        """Execute periodic tasks between two heartbeats."""

    def reason(self, end: End) -> str:
        """Return the reason for the end of a run without a fault; `end` is the reason reported by the servo."""
        return str(end)

    def quieten(self) -> None:
        """Remove the progress display of a run that has ended."""

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

    def meanwhile(self, work: Callable[[], _T]) -> _T:
        """Execute `work` in a thread with heartbeats to the servo, and return its result.

        Slow work, such as the compilation of a custom law, must not trigger the servo's watchdog.
        """
        with ThreadPoolExecutor(1, "haptics meanwhile") as pool:
            doing = pool.submit(work)
            while True:
                self.servo.beat()
                try:
                    return doing.result(HEARTBEAT_EVERY)
                except TimeoutError:
                    if doing.done():  # raised by the work
                        raise

    # --- course of the run --------------------------------------------------------------------------------------------

    def follow(self, listen: Listen = tuple) -> str:
        """Run to the end and return the reason for the end without a fault.

        Faults after the opening of the device are in `ending`.

        Raises
        ------
        HapticError
            If the device could not be opened.
        NeverStarted
            If the run was cancelled before the device was opened. In both cases the recording is deleted, unless the
            servo was lost.
        """
        try:
            reason = self._recorded(listen)
            if self.ending.fault is not None and not self.opened:
                raise self.ending.fault
            return reason
        except BaseException:
            if not self.opened and not self.ending.servo_lost:
                shutil.rmtree(self.recorder.folder, ignore_errors=True)
            raise

    def _recorded(self, listen: Listen) -> str:
        """Run to the end with the recorder thread, and close the recording."""
        every = RECORD_EVERY if self.servo.job.live else RECORD_AT_ONCE
        background = Background(self.recorder, self.not_written, self.servo.recorded, every)
        background.start()
        with contextlib.ExitStack() as servo:
            servo.callback(self.servo.close)
            try:
                reason = self._served(listen)
                if self.ending.servo_lost:
                    servo.close()  # it may have executed another tick until it was killed
                background.finish()
                # The servo is dismissed only then: until the recording is closed it must be able to complete the
                # recording.
                self.ending.settle(reason, complete=self.opened)
                return reason
            except BaseException:
                servo.close()
                background.finish()
                self.ending.settle(INTERRUPTED, complete=False)
                raise

    def _served(self, listen: Listen) -> str:
        """Run the servo to its end; return the reason for the end without a fault."""
        end, watch = None, FrozenWatch()
        try:
            self.servo.start()
            while end is None:
                end = self.look(watch, listen)
            reason = self.reason(end)
            if not self.opened:
                raise NeverStarted
            return reason
        except ServoLost as error:
            self.ending.fail(ServoLost(f"{self._device} lost its servo: {error}", error.rows))
        except HapticError as error:
            self.ending.fail(error)
        finally:
            self.quieten()
        return FAULT

    def look(self, watch: FrozenWatch, listen: Listen) -> End | None:
        """Send a heartbeat, process a message and periodic tasks; return the reason for the end, if any."""
        stopping = self.stopping
        self.servo.beat()
        wait([self.servo.connection, *listen()], HEARTBEAT_EVERY)
        message = self.servo.next_message()
        match message:
            case ("compiling" | "compiled" | "opening" | "ready") as stage, facts:
                self._take(stage, facts)
            case "device", facts:
                with self.writing():
                    self.recorder.note(device_facts=facts)
            case "ended", end:
                return self._judged(End(end))
            case None if stopping and not (self.opened or self.opening):
                self.servo.kill()  # it is only compiling, and checks for a stop before it opens the device
                return End.STOPPED
        watch.look(self.servo, started=self.opened)
        self.attend()
        return None

    def _take(self, stage: str, facts: Any) -> None:
        self.prepared(stage, facts)
        if stage == "compiled":
            self.preparing.clear()
        self.opening |= stage == "opening"
        if stage == "ready":
            self.opened, self.granted = True, facts
            with self.writing():
                self.recorder.note(real_time=facts)

    def _judged(self, end: End) -> End:
        """Return the reason for the end; raise `DeviceFault` if this process did not request it."""
        where = f"{self._device} was brought to its safe output after tick {self.servo.newest_tick}"
        if end is End.STOPPED and not self.stopping:
            raise DeviceFault(f"{where}: another program terminated the servo process.")
        if end is End.APPLICATION_LOST:
            raise DeviceFault(
                f"{where}: {self.me} was stopped, or gave the servo no sign of life for {SILENCE:g} s. Start again."
            )
        return end
