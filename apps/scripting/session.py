"""Control of a session from a script: `open_session` and `ScriptSession`.

The session runs in separate processes (`apps.scripting.host`); `apps.scripting.client` has the requests.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from apps.front_ends import messages as say
from apps.scripting.client import SessionClient, tables_of
from apps.scripting.host import Order
from haptics.errors import ConfigurationError, DeviceFault, HapticError

if TYPE_CHECKING:
    from haptics.friction.laws import Law
    from haptics.scenes import Scene

_END_TIMEOUT = 30.0
"""Time in which a session that was stopped must end [s]."""


def open_session(
    device: str = "",
    *,
    model: str = "",
    law: Law | str | Mapping[str, Any] | None = None,
    element: Mapping[str, float] | None = None,
    scene: Scene | Mapping[str, Any] | str | Path | None = None,
    hand: str | Path = "",
    duration: float | None = None,
    record: str | Path = "recordings",
    view: bool = False,
    clock: str = "wall",
    on_script_exit: str = "stop",
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> ScriptSession:
    """Start a session in separate processes and return when its first tick has run.

    Parameters
    ----------
    device : str
        Name of the device, as in ``haptics devices``; by default the first one that fits the model.
    model : str
        Friction element: A, B, C, D or a classic model; by default the one that suits the device.
    law : Law, str or mapping, optional
        Friction law: an object such as ``haptics.Coulomb(3.0)``, a name, or a table of settings.
    element : mapping, optional
        Parameters of the element by name, such as ``{"stiffness": 4000.0}``, in SI units.
    scene : Scene, mapping, str or Path, optional
        Scene or its table, or the name or file of one.
    hand : str or Path
        Simulated hand of a virtual device, or a CSV file with a recorded path.
    duration : float, optional
        Length of the run [s]; by default it runs until it is stopped.
    record : str or Path
        Folder for the folder of the recording.
    view : bool
        Whether to open the live view.
    clock : {"wall", "off"}
        ``off`` runs in simulated time: ticks are executed only by `ScriptSession.advance` and the methods that wait.
    on_script_exit : {"stop", "continue"}
        What happens to the run if the script ends without closing the session. ``continue`` needs a `duration` or a
        `view`, which can end it.
    config : str or Path, optional
        File with settings (TOML); the other arguments take precedence.
    settings : mapping, optional
        Further settings by key, such as ``{"device.seed": 3}`` (see ``docs/settings.md``); they take precedence over
        all others.

    Returns
    -------
    ScriptSession
        The running session, a context manager.

    Raises
    ------
    ConfigurationError
        If a setting is wrong; nothing was opened.
    DeviceNotFoundError, DeviceOpenError
        If the device cannot be opened.
    DeviceFault
        If the run failed before its first tick.

    Examples
    --------
    >>> import haptics
    >>> with haptics.open_session("virtual-joystick", law=haptics.Coulomb(3.0), clock="off") as session:
    ...     session.advance(0.5)
    ...     tick = session.configure(law=haptics.Coulomb(5.0))
    ...     session.advance(0.5)
    >>> tick
    501
    >>> session.recording.rows["settings_version"][[500, 501]]
    array([0, 1])
    """
    from apps.settings.config import TABLES, assign, read_file

    if on_script_exit not in ("stop", "continue"):
        raise ConfigurationError(f"on_script_exit = {on_script_exit!r}: must be 'stop' or 'continue'.")
    if on_script_exit == "continue" and duration is None and not view:
        raise ConfigurationError(
            "on_script_exit = 'continue': nothing could end the run after the script; give a duration, or view=True."
        )
    tables: dict[str, Any] = read_file(Path(config)) if config is not None else {}
    for name, table in tables_of(law, element, model, scene).items():
        tables[name] = {**tables.get(name, {}), **table} if name in ("session", "element") else table
    session = tables.setdefault("session", {})
    session.update(record=str(record), clock=clock)
    if duration is not None:
        session["duration"] = duration
    if device:
        tables.setdefault("device", {})["name"] = device
    for key, value in (settings or {}).items():
        table, _, name = key.partition(".")
        if table not in TABLES or not name:
            raise ConfigurationError(f"settings: {key!r} is not a key such as 'law.force' or 'device.seed'.")
        assign(tables, table, name, value)
    return ScriptSession(Order(tables, str(hand), view, on_script_exit == "stop"))


class ScriptSession(SessionClient):
    """A session controlled by this script, made by `open_session`."""

    def __init__(self, order: Order) -> None:
        near, far = socket.socketpair()
        root = str(Path(__file__).parents[2])
        paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "apps.scripting.host", str(far.fileno())],
            pass_fds=[far.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in a terminal is for the script, which then closes the session
            env={**os.environ, "PYTHONPATH": paths},
        )
        far.close()
        super().__init__(Connection(near.detach()), simulated=order.tables["session"]["clock"] == "off")
        self._end_process = weakref.finalize(self, _end_process, self._process, self._connection)
        try:
            self._connection.send(order)
            self.await_first_tick()
        except BaseException:
            self._end_process()
            raise

    def stop(self) -> None:
        """End the run, if it has not ended, and wait until its recording is complete.

        Raises
        ------
        DeviceFault
            If the run has failed.

        Examples
        --------
        >>> session.stop()
        >>> session.status
        'stopped'
        """
        self._poll(0.0)
        if self._ended is None:
            self._send("stop")
        until = time.monotonic() + _END_TIMEOUT
        while self._ended is None and time.monotonic() < until:
            self._poll(0.1)
        self._raise_fault()

    def close(self) -> None:
        """End the run like `stop`, and the processes of the session. Closing twice has no effect."""
        try:
            self.stop()
        finally:
            self._end_process()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except DeviceFault:
            if error is None:
                raise

    def __repr__(self) -> str:
        return f"<haptics session on {self.device}: {self.status}, tick {self.tick}, recording {self.folder}>"


def _end_process(process: subprocess.Popen[bytes], connection: Connection[Any, Any]) -> None:
    """End the session's process, which ends the run in order."""
    try:
        connection.send(say.Request(0, "stop"))
        until = time.monotonic() + _END_TIMEOUT
        while connection.poll(max(until - time.monotonic(), 0.0)):
            message = connection.recv()
            refused = isinstance(message, say.Reply) and message.number == 0 and message.error  # it has ended before
            if refused or isinstance(message, say.SessionEnded | HapticError):
                break
    except (EOFError, OSError):
        pass
    connection.close()
    try:
        process.wait(_END_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
