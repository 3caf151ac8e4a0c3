"""Client of a session in other processes: requests, and the rows of the run."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from apps.front_ends import messages as say
from haptics.device import DEAD_MAN_BUTTON
from haptics.errors import ConfigurationError, DeviceFault, HapticError, ParameterWarning
from haptics.recording.recording import Recording
from haptics.records import ROW, Rows, flatten
from haptics.trace import Ring

if TYPE_CHECKING:
    import pandas

    from haptics.friction.laws import Law
    from haptics.scenes import Scene

RUNNING = "running"
"""Status of a session that has not ended."""

GATE_WAIT = 0.06
"""Time for which a change behind the gate waits until the output has faded out [s]."""

_POLL = 1e-3
"""Interval at which a waiting client looks for new rows [s]."""
_STEP = 0.01
"""Time by which a client that waits for an event advances a session in simulated time [s]."""


class SessionClient:
    """Requests to a session, and its rows.

    The rows are read from shared memory; requests go through a pipe. The client cannot delay a tick. Several threads
    may use one client. In the examples, ``session`` is a new session of the device ``virtual-joystick`` with the hand
    ``minimum-jerk`` and ``clock="off"``.

    Parameters
    ----------
    connection : Connection
        Pipe to the process of the session, which treats the client as a front end (`apps.front_ends`).
    simulated : bool
        Whether the session runs in simulated time.

    Attributes
    ----------
    quit : bool
        Whether the session has asked its clients to end, or has ended unexpectedly.
    """

    def __init__(self, connection: Connection[Any, Any], *, simulated: bool = False) -> None:
        self._connection, self._simulated = connection, simulated
        self._receiving, self._sending = threading.Lock(), threading.Lock()
        self._replies: dict[int, say.Reply] = {}
        self._requests = 0
        self._trace: Ring | None = None
        self._started: say.SessionStarted | None = None
        self._ended: say.SessionEnded | None = None
        self._error: HapticError | None = None
        self._layout: tuple[dict[str, str], np.dtype[Any]] | None = None
        self._gate_open = True
        self._prepared = False
        self.quit = False

    def await_first_tick(self) -> None:
        """Wait until the first tick of the run, and for the advice that precedes the end of the preparation.

        Raises
        ------
        HapticError
            If the session could not be started.
        """
        while not (self._ticks and self._prepared):
            self._poll(_POLL if self._trace is not None else 1.0)
            if self._error is not None:
                raise self._error
            if self._ended is not None:
                if self._ticks:
                    return
                self._raise_fault()
                raise ConfigurationError(f"the session ended before its first tick ({self._ended.reason}).")

    # --- state --------------------------------------------------------------------------------------------------------

    @property
    def status(self) -> str:
        """``running``, or the end of the run: ``completed``, ``stopped``, ``interrupted`` or ``fault``.

        Examples
        --------
        >>> session.status
        'running'
        """
        self._poll(0.0)
        return RUNNING if self._ended is None else self._ended.reason

    @property
    def tick(self) -> int:
        """Number of the newest tick.

        Examples
        --------
        >>> session.advance(0.25)
        >>> session.tick
        250
        """
        return int(self._newest["tick"])

    @property
    def time(self) -> float:
        """Nominal time of the newest tick [s]."""
        return float(self._newest["time"])

    @property
    def recording(self) -> Recording:
        """The recording; it is complete after the end of the run.

        Examples
        --------
        >>> session.advance(0.5)
        >>> session.stop()
        >>> session.recording.rows["tick"][-1] >= 500
        np.True_
        """
        return Recording(self.folder)

    @property
    def certificate(self) -> dict[str, Any] | None:
        """Timing certificate of the run; None before its end.

        Examples
        --------
        >>> session.advance(0.5)
        >>> session.stop()
        >>> session.certificate["fit"]
        True
        """
        if self.status == RUNNING:
            return None
        certificate: dict[str, Any] = self.recording.metadata["certificate"]
        return certificate

    @property
    def summary(self) -> dict[str, Any]:
        """Summary of the run, with the keys of ``haptics run --json``; empty before its end.

        Examples
        --------
        >>> session.stop()
        >>> session.summary["reason"]
        'stopped'
        """
        self._poll(0.0)
        return {} if self._ended is None else self._ended.summary

    # --- rows ---------------------------------------------------------------------------------------------------------

    def latest(self, seconds: float) -> Rows:
        """Return the rows of the last `seconds` [s]: a structured array (n,) with the columns of a recording.

        Examples
        --------
        >>> session.advance(0.5)
        >>> session.latest(0.1)["position"].shape
        (100, 2)
        """
        return self.since(self.tick - round(seconds * self.rate) + 1)

    def since(self, tick: int) -> Rows:
        """Return the rows from number `tick` on: a structured array (n,) with the columns of a recording.

        Rows that are no longer in the shared memory, which holds 16 s at 1 kHz, are read from the recording.

        Examples
        --------
        >>> tick = session.configure(law="stribeck")
        >>> session.advance(0.2)
        >>> rows = session.since(tick)
        >>> (len(rows), int(rows["settings_version"][0]))
        (200, 1)
        """
        trace, count = self._ring, self._ring.count
        low = oldest = max(count - trace.capacity + 1, 0)
        high, ticks = count, trace.slots["tick"]
        while low < high:  # the first row from `tick` on; the numbers increase, with gaps where ticks were skipped
            middle = (low + high) // 2
            low, high = (middle + 1, high) if ticks[middle % trace.capacity] < tick else (low, middle)
        rows = trace.since(low)
        rows = rows.view(_part_of_row(self._columns[1])).astype(self._columns[1])
        if low > oldest or not oldest or not len(rows) or tick >= rows["tick"][0]:
            return rows
        recorded = self.recording.rows
        first, last = np.searchsorted(recorded["tick"], (tick, rows["tick"][0])).tolist()
        return np.concatenate((recorded[first:last], rows))

    def to_frame(self, seconds: float = math.inf) -> pandas.DataFrame:
        """Return the rows of the last `seconds` [s], or all, as a data frame of scalar columns with units.

        Raises
        ------
        ConfigurationError
            If pandas is not installed.

        Examples
        --------
        >>> session.advance(0.2)
        >>> float(session.to_frame()["time_s"].iloc[-1])
        0.2
        """
        try:
            import pandas
        except ImportError as error:
            raise ConfigurationError("a data frame needs pandas: pip install 'haptics[export]'.") from error
        rows = self.since(0) if math.isinf(seconds) else self.latest(seconds)
        return pandas.DataFrame(flatten(rows, self.units, self.causality))

    # --- control ------------------------------------------------------------------------------------------------------

    def configure(
        self,
        *,
        law: Law | str | Mapping[str, Any] | None = None,
        element: Mapping[str, float] | None = None,
        model: str = "",
        scene: Scene | Mapping[str, Any] | str | Path | None = None,
        gate: bool = False,
    ) -> int:
        """Change the law, parameters of the element, the model or the scene, all in the same tick.

        Parameters
        ----------
        law, element, model, scene
            As for `open_session`. The model must have the causality of the device. A table of a law without ``name``
            changes parameters of the present law. `scene` = ``""`` removes the scene.
        gate : bool
            Whether to fade the output out before the change and in again after it, so that the change is not felt.

        Returns
        -------
        int
            Number of the first tick with the new settings.

        Raises
        ------
        ConfigurationError
            If a setting is wrong; nothing was changed.
        DeviceFault
            If the run has failed.

        Examples
        --------
        >>> session.advance(0.1)
        >>> session.configure(law=haptics.Coulomb(2.0), element={"stiffness": 3000.0})
        101
        """
        tables = tables_of(law, element, model, scene)
        reopen = gate and self._gate_open
        if reopen:
            self.gate(open=False)
            self.wait(GATE_WAIT)
        index = self._ring.count - 1
        try:
            version = self._request("configure", tables=tables)["version"]
        finally:
            if reopen and self._ended is None:
                self._request("gate", open=True)
                self._gate_open = True
        if self._simulated:
            return self.tick + 1
        while True:
            rows = self._ring.since(index)
            changed = np.flatnonzero(rows["settings_version"] >= version)
            if len(changed):
                return int(rows["tick"][changed[0]])
            index += len(rows)
            self._await_rows(math.inf)
            self._require_running()

    def gate(self, open: bool) -> None:  # noqa: A002
        """Fade the output in (`open`) or out.

        Examples
        --------
        >>> session.gate(open=False)
        >>> session.advance(0.1)
        >>> float(session.latest(0.01)["gate"].max())
        0.0
        """
        self._request("gate", open=bool(open))
        self._gate_open = bool(open)

    def mark(self, marker: int) -> None:
        """Set the column ``marker`` of all rows from the next tick on, for example to the number of the trial.

        Examples
        --------
        >>> session.mark(7)
        >>> session.advance(0.1)
        >>> int(session.latest(0.01)["marker"][-1])
        7
        """
        if not isinstance(marker, int | np.integer) or not -(2**63) <= marker < 2**63:
            raise ConfigurationError(f"mark: {marker!r}; must be an integer of 64 bits.")
        self._request("mark", marker=int(marker))

    def advance(self, seconds: float) -> None:
        """Run a session in simulated time for `seconds` [s], rounded to ticks; return early if the run ends.

        Raises
        ------
        ConfigurationError
            If the session follows the wall clock: use `wait`.
        DeviceFault
            If the run has failed.

        Examples
        --------
        >>> session.advance(1.0)
        >>> session.time
        1.0
        """
        if not math.isfinite(seconds) or seconds < 0.0:
            raise ConfigurationError(f"seconds = {seconds!r}: must be finite, and at least 0.")
        ticks = round(seconds * self.rate)
        if ticks == 0:
            return
        until = self._ring.count + ticks
        self._request("advance", ticks=ticks)
        while self._ring.count < until and self._ended is None:
            self._poll(1e-4)
        self._raise_fault()

    def wait(self, seconds: float) -> None:
        """Wait until `seconds` [s] of the session have passed, or the run has ended.

        A session in simulated time is advanced by this time.

        Examples
        --------
        >>> session.wait(0.5)
        >>> session.tick
        500
        """
        if self._simulated:
            self.advance(seconds)
            return
        if not math.isfinite(seconds) or seconds < 0.0:
            raise ConfigurationError(f"seconds = {seconds!r}: must be finite, and at least 0.")
        until = self.time + seconds
        while (left := until - self.time) > 0.0 and self._ended is None:
            self._poll(min(max(left, _POLL), 0.05))
        self._raise_fault()

    def wait_until(self, predicate: Callable[[Rows], Any], timeout: float = math.inf) -> int | None:
        """Wait until `predicate` is true for a new row, and return the number of this tick.

        Parameters
        ----------
        predicate : callable
            Called with new rows, a structured array (n,); returns booleans, (n,), or one for all of these rows.
        timeout : float
            Maximum time of the session to wait [s].

        Returns
        -------
        int or None
            Number of the first tick for which it is true; None after the timeout or the end of the run.

        Examples
        --------
        >>> tick = session.wait_until(lambda rows: abs(rows["velocity"][:, 0]) > 0.01, timeout=5.0)
        >>> tick is not None
        True
        """
        end = self.time + timeout
        following = self.tick + 1
        while True:
            rows = self.since(following)
            if len(rows):
                found = np.flatnonzero(np.broadcast_to(np.asarray(predicate(rows), bool), len(rows)))
                if len(found):
                    return int(rows["tick"][found[0]])
                following = int(rows["tick"][-1]) + 1
            if self._ended is not None:
                self._raise_fault()
                return None
            left = end - self.time
            if left <= 0.0:
                return None
            self._await_rows(left)

    def wait_for_button(self, timeout: float = math.inf) -> tuple[int, int] | None:
        """Wait until a button of the device is pressed, for at most `timeout` [s] of the session.

        The dead-man's switch, bit 0, does not count.

        Returns
        -------
        (button, tick) or None
            Bit number of the button, from 1 on, and the tick.

        Examples
        --------
        >>> print(session.wait_for_button(timeout=0.5))
        None
        """
        held = int(self._newest["buttons"]) | DEAD_MAN_BUTTON
        pressed = 0

        def presses(rows: Rows) -> NDArray[np.bool_]:
            nonlocal held, pressed
            buttons = rows["buttons"].astype(np.int64) | DEAD_MAN_BUTTON
            edges = buttons & ~np.concatenate(([held], buttons[:-1]))
            held = int(buttons[-1])
            if edges.any():
                pressed = int(edges[np.flatnonzero(edges)[0]])
            return np.asarray(edges != 0)

        tick = self.wait_until(presses, timeout)
        return None if tick is None else ((pressed & -pressed).bit_length() - 1, tick)

    def request_stop(self) -> None:
        """Request the end of the run, without waiting for it."""
        self._request("stop")

    def _repr_html_(self) -> str:
        """Return the display of a notebook: state, last force, and a sketch of the path."""
        from apps.shared.notebook import session_html

        return session_html(self)

    # --- messages -----------------------------------------------------------------------------------------------------

    @property
    def _about(self) -> say.SessionStarted:
        if self._started is None:
            raise ConfigurationError("the run has not begun.")
        return self._started

    @property
    def folder(self) -> Path:
        """Folder of the recording."""
        return Path(self._about.recording)

    @property
    def device(self) -> str:
        """Name of the device."""
        return self._about.device

    @property
    def rate(self) -> float:
        """Nominal rate [Hz]."""
        return self._about.rate_hz

    @property
    def model(self) -> str:
        """Name of the model in force."""
        return self._about.model

    @property
    def law(self) -> dict[str, Any]:
        """Name and settings of the law in force; in a scene, those of its background."""
        return {"name": self._about.law, **self._about.law_settings}

    @property
    def causality(self) -> str:
        """Causality of the device: ``impedance`` or ``admittance``."""
        return self._about.causality

    @property
    def units(self) -> dict[str, str]:
        """Units of the columns of a row."""
        return self._columns[0]

    @property
    def _columns(self) -> tuple[dict[str, str], np.dtype[Any]]:
        """Units of the columns, and the type of a row of the recording."""
        if self._layout is None:
            recording = self.recording
            self._layout = recording.metadata["columns"], recording.read(0, 0).dtype
        return self._layout

    @property
    def _ring(self) -> Ring:
        if self._trace is None or not self._trace.count:
            raise ConfigurationError("the run has not begun.")
        return self._trace

    @property
    def _ticks(self) -> int:
        """Number of ticks executed."""
        return 0 if self._trace is None else self._trace.count

    @property
    def _newest(self) -> Any:
        return self._ring.slots[(self._ring.count - 1) % self._ring.capacity]

    def attend(self, timeout: float) -> None:
        """Handle the messages of the session for at most `timeout` [s]."""
        self._poll(timeout)

    def _await_rows(self, timeout: float) -> None:
        """Wait for new rows for at most `timeout` [s] of the session."""
        if self._simulated:
            self.advance(max(min(_STEP, timeout), 1.0 / self.rate))
        else:
            self._poll(_POLL)

    def _require_running(self) -> None:
        self._poll(0.0)
        self._raise_fault()
        if self._ended is not None:
            raise ConfigurationError(f"the session has ended ({self._ended.reason}); open a new one.")

    def _send(self, verb: str, **arguments: Any) -> int:
        """Send a request and return its number."""
        with self._sending:
            self._requests += 1
            number = self._requests
            try:
                self._connection.send(say.Request(number, verb, arguments))
            except OSError:
                self._lose()
        return number

    def _request(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and return its result; raise `ConfigurationError` if it was refused."""
        self._require_running()
        number = self._send(verb, **arguments)
        while number not in self._replies:
            if self._ended is not None:
                self._require_running()
            self._poll(1.0)
        reply = self._replies.pop(number)
        if reply.error:
            raise ConfigurationError(reply.error)
        return reply.result

    def _poll(self, timeout: float) -> None:
        """Handle the messages of the session, waiting for the first one for at most `timeout` [s]."""
        if not self._receiving.acquire(timeout=timeout):
            return  # another thread waits for messages
        try:
            while self._connection.poll(timeout):
                self._handle(self._connection.recv())
                timeout = 0.0
        except (EOFError, OSError):
            self._lose()
            time.sleep(min(timeout, _POLL))
        finally:
            self._receiving.release()

    def _handle(self, message: Any) -> None:
        match message:
            case say.SessionStarted():
                self._started, self._trace, self._ended = message, Ring.attach(Path(message.trace)), None
                self._layout = None
            case say.LawInForce(model, law, settings) if self._started is not None:
                self._started = dataclasses.replace(self._started, model=model, law=law, law_settings=settings)
            case say.ValuesInForce(values) if self._started is not None:
                self._started.law_settings.update(
                    (key.removeprefix("law."), value) for key, value in values.items() if key.startswith("law.")
                )
            case say.Preparing(words):
                self._prepared = not words
            case say.Quit():
                self.quit = True
            case say.Reply():
                self._replies[message.number] = message
            case say.SessionEnded():
                self._ended = message
            case say.Advised(words):
                warnings.warn(words, ParameterWarning, stacklevel=5)
            case HapticError():
                self._error = message

    def _lose(self) -> None:
        """Note that the application process has ended."""
        self.quit = True
        if self._ended is None:
            self._ended = say.SessionEnded("fault", {}, "the process of the session ended unexpectedly.")

    def _raise_fault(self) -> None:
        """Raise the fault that ended the run, if any."""
        if self._ended is not None and self._ended.error:
            fault = DeviceFault(self._ended.error, self.latest(1.0) if self._ticks else None)
            fault.recording = self.folder if self._started is not None else None
            fault.add_note(f"recording: {fault.recording}")
            raise fault


def _part_of_row(columns: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of a trace row with the columns of a recording only; a trace row begins with them."""
    parts: Mapping[str, Any] = columns.fields or {}
    formats, offsets = zip(*((part[0], part[1]) for part in parts.values()), strict=True)
    layout: Any = {"names": list(parts), "formats": formats, "offsets": offsets, "itemsize": ROW.itemsize}
    row: np.dtype[Any] = np.dtype(layout)
    return row


def tables_of(
    law: Law | str | Mapping[str, Any] | None,
    element: Mapping[str, float] | None,
    model: str,
    scene: Scene | Mapping[str, Any] | str | Path | None,
) -> dict[str, Any]:
    """Return the tables of settings of a session for the arguments of `open_session`."""
    tables: dict[str, Any] = {}
    if isinstance(law, str):
        tables["law"] = {"name": law}
    elif isinstance(law, Mapping):
        tables["law"] = dict(law)
    elif law is not None:
        from haptics.elements.tables import law_settings

        tables["law"] = law_settings(law)
    if element is not None:
        tables["element"] = dict(element)
    if model:
        tables["session"] = {"model": model}
    if isinstance(scene, str | Path):
        tables["scene"] = str(scene)
    elif isinstance(scene, Mapping):
        tables["scene"] = dict(scene)
    elif scene is not None:
        from haptics.scenes import scene_table

        tables["scene"] = scene_table(scene)
    return tables
