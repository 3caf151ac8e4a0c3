"""A run in a servo process, from the application's side: recorded, watched over, ended in order, whatever happens."""

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
"""The servo gets a heartbeat at least this often [s]."""

INTERRUPTED = "interrupted"

_T = TypeVar("_T")

Listen = Callable[[], Iterable[Any]]
"""Returns the connections to wait for besides the servo's."""


class NeverStarted(KeyboardInterrupt):
    """The run was cancelled before its device was open."""


class Run:
    """A servo process and the recording of what it does; who derives from it says what goes on beside them.

    Parameters
    ----------
    recorder : Recorder
        The recording, begun.
    job : Job
        What the servo is to do.
    device : str
        What its device is called in messages.
    tell : callable
        Takes a line for the person.
    standby : Standby, optional
        A process that waits for the job.

    Attributes
    ----------
    servo : ServoProcess
        The servo.
    ending : Ending
        What went wrong.
    stopping : bool
        Whether the end was asked for.
    preparing : Event
        Set until the servo has all its kernels and is about to open its device. Work that can wait must not be begun
        in this process from then on.
    opening, opened : bool
        Whether the device may have been touched, and whether it has been opened.
    granted : dict
        What the operating system granted the servo.
    me : str
        What this side is called in messages.
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

    # --- what a run may do of its own -------------------------------------------------------------------------------

    def prepared(self, stage: str, facts: Any) -> None:
        """Take note of how far the servo is before the first tick (`ServoProcess.next_message`)."""

    def attend(self) -> None:
        """Do what there is to do between two heartbeats."""

    def reason(self, end: End) -> str:
        """Return why a run without a fault has ended, whose servo says `end`."""
        return str(end)

    def quieten(self) -> None:
        """Take down what is shown of a run that goes on; it is over."""

    # --- its end ----------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the run in order."""
        self.stopping = True
        self.servo.stop()

    def fail(self, fault: HapticError) -> None:
        """End the run in order because of a fault beside it; the first one is that of the run."""
        self.ending.fail(fault)
        self.stop()

    def not_written(self, error: OSError) -> None:
        """End the run in order, for the disk refuses it: nobody may miss data without knowing it."""
        self.fail(not_written(error, "the run was stopped"))

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """End the run in order if its recording cannot be written."""
        try:
            yield
        except OSError as error:
            self.not_written(error)

    def meanwhile(self, work: Callable[[], _T]) -> _T:
        """Do `work` in a thread and return its result; the servo goes on being given signs of life.

        What may take its time, such as compiling a law of a person's own, must not be taken for silence.
        """
        with ThreadPoolExecutor(1, "haptics meanwhile") as pool:
            doing = pool.submit(work)
            while True:
                self.servo.beat()
                try:
                    return doing.result(HEARTBEAT_EVERY)
                except TimeoutError:
                    if doing.done():  # it is the work's own
                        raise

    # --- its course -------------------------------------------------------------------------------------------------

    def follow(self, listen: Listen = tuple) -> str:
        """Run to the end, whatever that is; return why it ended, if not by a fault.

        What failed after the device was open is in `ending`.

        Raises
        ------
        HapticError
            What kept the device from being opened.
        NeverStarted
            If the run was cancelled before that. In both cases no recording is left behind, unless the servo was lost.
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
        """Run to the end with the recorder beside it, and close the recording."""
        every = RECORD_EVERY if self.servo.job.live else RECORD_AT_ONCE
        background = Background(self.recorder, self.not_written, self.servo.recorded, every)
        background.start()
        with contextlib.ExitStack() as servo:
            servo.callback(self.servo.close)
            try:
                reason = self._served(listen)
                if self.ending.servo_lost:
                    servo.close()  # while it was being killed it may have come to another tick
                background.finish()
                # Only then is the servo dismissed: until its recording is closed it stands by to do that itself.
                self.ending.settle(reason, complete=self.opened)
                return reason
            except BaseException:
                servo.close()
                background.finish()
                self.ending.settle(INTERRUPTED, complete=False)
                raise

    def _served(self, listen: Listen) -> str:
        """Run the servo to its end; return why it ended, if not by a fault."""
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
        """Give the servo a sign of life, hear what it says and do what there is to do; return why it ended, if so."""
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
                self.servo.kill()  # it only compiles; it asks whether to stop before it touches the device
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
        """Return why the servo ended the run; raise `DeviceFault` if nobody here wanted that."""
        where = f"{self._device} was brought to its safe output after tick {self.servo.newest_tick}"
        if end is End.STOPPED and not self.stopping:
            raise DeviceFault(f"{where}: another program terminated the servo process.")
        if end is End.APPLICATION_LOST:
            raise DeviceFault(
                f"{where}: {self.me} was stopped, or gave the servo no sign of life for {SILENCE:g} s. Start again."
            )
        return end
