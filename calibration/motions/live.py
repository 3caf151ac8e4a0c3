"""Running a procedure by the wall's clock in a servo process, from this one.

The procedure has a thread of its own, so that it may take its time, or wait for a person, while the servo gets its
signs of life. Until it says what comes next the motion in force holds where it has come to.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from calibration.motions.stage import Stage
from devices.common.log import DEVICE_LOG
from haptics.clock import Clock
from haptics.device import Device
from haptics.errors import DeviceFault
from haptics.records import Rows
from haptics.servo.background import FrozenWatch
from haptics.servo.job import SILENCE, Job, Paths
from haptics.servo.loop import End
from haptics.servo.run import HEARTBEAT_EVERY, Listen, Run

PROCEDURE = "haptics procedure"
"""Name of the thread in which a procedure thinks."""


class Live(Run):
    """A procedure in a servo process.

    Parameters
    ----------
    stage : Stage
        The procedure, what it moves and where that is recorded.
    """

    def __init__(self, stage: Stage) -> None:
        mover, folder = stage.mover, stage.recorder.folder
        more = {"log": str(folder / DEVICE_LOG)} if mover.logs else {}
        job = Job(
            factory=functools.partial(_make, mover.factory, more),
            element=stage.course.motion,
            limits=stage.limits,
            duration=None,
            recording=folder,
            paths=Paths.unique(),
            real_time=mover.real_time,
        )
        super().__init__(stage.recorder, job, stage.spec.name, stage.warn)
        self._stage = stage
        stage.present.trace = self.servo.trace
        self._thinking: threading.Thread | None = None
        self._published = 0.0
        self._saying, self._over = threading.Lock(), False

    def run(self) -> None:
        """Run to the end, whatever that is; raise what went wrong."""
        self.follow()
        self._stage.certify(self.ending, used=self.servo.used, granted=self.granted)

    def look(self, watch: FrozenWatch, listen: Listen) -> End | None:
        """Look once; Ctrl-C ends the run in order."""
        try:
            return super().look(watch, listen)
        except KeyboardInterrupt as interrupt:
            self._stage.error = self._stage.error or interrupt
            self.stop()
            return None

    def reason(self, end: End) -> str:
        """Return why the procedure ended: by itself, or not."""
        return self._stage.reason

    def attend(self) -> None:
        """Tell how far it is; when the motion in force has come to its end, ask what comes next."""
        if self.opened:
            self._stage.progress(max(self.servo.newest_tick, 0) * self._stage.mover.period)
            self._go_on()

    def _go_on(self) -> None:
        stage, trace = self._stage, self.servo.trace
        if self.stopping or (self._thinking is not None and self._thinking.is_alive()) or not trace.count:
            return
        row = trace.since(trace.count - 1)[-1]
        if row["settings_version"] != stage.course.number:
            if time.monotonic() - self._published > SILENCE:
                raise DeviceFault(f"{stage.spec.name}: its servo did not take the next motion.")
        elif row["sticking"]:
            self._thinking = threading.Thread(target=self._think, args=(int(row["tick"]),), name=PROCEDURE, daemon=True)
            self._thinking.start()
        else:
            stage.course.require_progress(int(row["tick"]), int(row["permission"]))

    def _think(self, tick: int) -> None:
        """Give the procedure all rows up to that of `tick`, and the servo what it says to them."""
        stage, more = self._stage, False
        error: BaseException | None = None
        try:
            more = stage.course.go_on(self._rows_until(tick))
        except BaseException as raised:  # an error of the procedure, not of the device
            error = raised
        with self._saying:
            if self._over or self.stopping:  # what it says now comes too late
                return
            if more:
                self._say()
                return
            stage.error = stage.error or error
            self.stop()

    def _say(self) -> None:
        """Write down the next motion, and give it to the servo."""
        with self.writing():
            line = self._stage.course.note(self._stage.recorder)
            self._published = time.monotonic()
            self.servo.go_on_with(line)

    def quieten(self) -> None:
        """Let the procedure, which may still be thinking, say nothing any more: the run is over."""
        with self._saying:
            self._over = True

    def _rows_until(self, tick: int) -> Rows:
        """Return all rows, once that of `tick` is among them, or the run is over."""
        while True:
            rows = self._stage.recorder.rows()
            if self._over or (len(rows) and rows["tick"][-1] >= tick):
                return rows
            time.sleep(HEARTBEAT_EVERY)


def _make(factory: Callable[[Mapping[str, Any], Clock], Device], more: dict[str, Any], clock: Clock) -> Device:
    """Make the device inside the servo process."""
    return factory(more, clock)
