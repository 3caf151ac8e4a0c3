"""Running a procedure by the wall's clock in a servo process, from this one.

The procedure has a thread of its own, so that it may take its time, or wait for a person, while the servo gets its
signs of life. Until it says what comes next the motion in force holds where it has come to.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import wait
from typing import Any

from calibration.motions.stage import Stage
from devices.virtual.log import DEVICE_LOG
from haptics.background import Background, FrozenWatch
from haptics.clock import Clock
from haptics.device import Device
from haptics.ending import Ending, not_written
from haptics.errors import DeviceFault, HapticError, ServoLost
from haptics.job import SILENCE, Job, Paths
from haptics.loop import End
from haptics.process import ServoProcess
from haptics.trace import Reader, Rows

_BEAT = 0.01
"""The servo gets a sign of life at least this often [s]."""


def run_live(stage: Stage) -> None:
    """Run to the end, whatever that is; raise what went wrong."""
    run = _Live(stage)
    background = Background(stage.recorder, run.not_written)
    background.start()
    try:
        run.serve()
        if run.ending.servo_lost:
            run.servo.close()  # while it was being killed it may have come to another tick
        background.finish()
        stage.settle(run.ending, run.servo.trace)
    finally:
        run.servo.close()
        background.finish()


class _Live:
    """A run of a servo process."""

    def __init__(self, stage: Stage) -> None:
        mover, folder = stage.mover, stage.recorder.folder
        more = {"log": str(folder / DEVICE_LOG)} if mover.logs else {}
        self._stage = stage
        self.servo = ServoProcess(
            Job(
                factory=functools.partial(_make, mover.factory, more),
                element=stage.course.motion,
                limits=stage.limits,
                duration=None,
                recording=folder,
                paths=Paths.unique(),
                real_time=mover.real_time,
            )
        )
        stage.recorder.follow(Reader(self.servo.trace))
        stage.present.trace = self.servo.trace
        self.ending = Ending(stage.recorder, self.servo.trace, stage.warn)
        self._opening = self._done = False
        self._thinking: threading.Thread | None = None
        self._published = 0.0

    def not_written(self, error: OSError) -> None:
        """End the run in order: nobody may miss data without knowing it."""
        self.ending.fail(not_written(error, "the run was stopped"))
        self._stop()

    def serve(self) -> None:
        """Run the servo to its end; what went wrong is in the ending, or in the stage."""
        try:
            self.servo.start()
            watch = FrozenWatch()
            while not self._look(watch):
                pass
        except ServoLost as error:
            name = self._stage.spec.name
            self.ending.fail(ServoLost(f"{name} lost its servo: {error}", error.rows))
        except HapticError as error:
            self.ending.fail(error)

    def _look(self, watch: FrozenWatch) -> bool:
        """Do what there is to do now; tell whether the run has ended. Ctrl-C ends it in order."""
        stage = self._stage
        try:
            self.servo.beat()
            wait([self.servo.connection], _BEAT)
            match self.servo.next_message():
                case ("opening", _):
                    self._opening = True
                case "ready", granted:
                    stage.started = True
                    stage.used |= granted
                    stage.recorder.note(real_time=granted)
                case "ended", end:
                    stage.used |= self.servo.used
                    self._judge(End(end))
                    return True
            watch.look(self.servo, started=stage.started)
            if stage.started:
                stage.progress(max(self.servo.newest_tick, 0) * stage.mover.period)
                self._go_on()
        except KeyboardInterrupt as interrupt:
            stage.error = stage.error or interrupt
            self._stop()
            if not (stage.started or self._opening):  # it only compiles
                self.servo.kill()
                return True
        return False

    def _judge(self, end: End) -> None:
        """Raise `DeviceFault` if the run ended otherwise than it was told to."""
        if end is End.APPLICATION_LOST:
            raise DeviceFault(
                f"{self._stage.spec.name} was brought to its safe output after tick {self.servo.newest_tick}: this "
                f"process was stopped, or gave the servo no sign of life for {SILENCE:g} s. Start again."
            )
        if not self._done:
            raise DeviceFault(
                f"{self._stage.spec.name} was brought to its safe output after tick {self.servo.newest_tick}: somebody "
                "else asked the servo process to terminate."
            )

    # --- the procedure ------------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """When the motion in force has come to its end, ask what comes next."""
        stage, trace = self._stage, self.servo.trace
        if self._done or (self._thinking is not None and self._thinking.is_alive()) or not trace.count:
            return
        row = trace.since(trace.count - 1)[-1]
        if row["settings_version"] != stage.course.number:
            if time.monotonic() - self._published > SILENCE:
                raise DeviceFault(f"{stage.spec.name}: its servo did not take the next motion.")
        elif row["sticking"]:
            self._thinking = threading.Thread(target=self._think, args=(int(row["tick"]),), daemon=True)
            self._thinking.start()
        else:
            stage.course.require_progress(int(row["tick"]), int(row["permission"]))

    def _think(self, tick: int) -> None:
        """Give the procedure all rows up to that of `tick`, and the servo what it says to them."""
        stage = self._stage
        try:
            if stage.course.go_on(self._recorded(tick)):
                line = stage.course.note(stage.recorder)
                self._published = time.monotonic()
                self.servo.go_on_with(line)
                return
        except OSError as error:
            self.not_written(error)
        except BaseException as error:  # the procedure's own, of which the device is not to blame
            stage.error = stage.error or error
        self._stop()

    def _recorded(self, tick: int) -> Rows:
        """Return all rows, once that of `tick` is among them."""
        while True:
            rows = self._stage.recorder.rows()
            if len(rows) and rows["tick"][-1] >= tick:
                return rows
            time.sleep(_BEAT)

    def _stop(self) -> None:
        self._done = True
        self.servo.stop()


def _make(factory: Callable[[Mapping[str, Any], Clock], Device], more: dict[str, Any], clock: Clock) -> Device:
    """Make the device inside the servo process."""
    return factory(more, clock)
