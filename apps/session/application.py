"""Application that runs sessions one after another on the same windows until the user quits."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing.connection import wait
from pathlib import Path

from apps.front_ends import messages as say
from apps.front_ends.front_end import FrontEnd
from apps.session.run import Outcome, Session
from apps.session.service import Mouse, Service
from apps.settings.config import SessionConfig, complete
from apps.settings.models import Table, causality_of
from apps.shared.picture import draw, preloading
from apps.shared.terminal import print_status
from haptics.errors import ConfigurationError, HapticError, RecordingError
from haptics.recording.recording import Recording
from haptics.servo.run import HEARTBEAT_INTERVAL, StartCancelled
from haptics.servo.servo import EndReason
from haptics.servo.standby import Standby

MOUSE = "mouse"

HEADLESS = "--headless was given"
"""Reason for the absence of a window if none was requested."""

WINDOW_TIMEOUT = 60.0
"""Timeout for the window of a session that requires it [s]."""

PAUSE = 1.5
"""Pause before a repeated run starts again [s]."""

LINGER = 5.0
"""Time for which the window shows the result of a run that ended by itself [s]."""


class Application:
    """Runs sessions, with or without a window.

    Parameters
    ----------
    tables : dict
        Tables of the first session; see `apps.settings.config`.
    windows : sequence of callables
        Functions that open a window on the sessions, or another front end with a dead-man's key.
    streams : sequence of callables
        Functions that start a stream, which receives messages only.
    controls : sequence of callables
        Functions that start a remote control.
    obstacle : str
        Reason why there is no live view; empty if there is one. It is reported unless it is `HEADLESS`.
    notify : callable
        Receives lines for the user.
    caption : str
        Caption of the windows.
    again : str
        Folder for the recordings of repeated runs. Each completed run is repeated until a user stops it or closes the
        windows. If empty, runs are not repeated.
    standby : Standby, optional
        Servo process that waits for the job of the first session.
    """

    def __init__(
        self,
        tables: dict[str, Table],
        *,
        windows: Sequence[Callable[[], FrontEnd]] = (),
        streams: Sequence[Callable[[], FrontEnd]] = (),
        controls: Sequence[Callable[[], FrontEnd]] = (),
        obstacle: str = HEADLESS,
        notify: Callable[[str], None] = print_status,
        caption: str = "",
        again: str = "",
        standby: Standby | None = None,
    ) -> None:
        self._tables, self._caption, self._again = tables, caption, again
        self._windows, self._streams, self._controls, self._obstacle = windows, streams, controls, obstacle
        self._notify, self._standby = notify, standby
        self._service = Service(notify)
        self._interrupted = False

    def run(self) -> Outcome:
        """Run until a session ends without a successor or the window is closed; return the last outcome.

        If runs are repeated, the outcome of the first run is returned, unless a run failed.
        """
        service = self._service
        if self._tables.get("hand", {}).get("name") == MOUSE and not self._windows:
            raise ConfigurationError(f"hand.name = 'mouse': needs the live view, but there is none: {self._obstacle}.")
        with ExitStack() as stack:
            if self._windows:
                service.mouse = stack.enter_context(Mouse())
            config = self._configure(self._tables)
            requires_key = config.limits.dead_man == "key"
            if requires_key and not self._windows:
                raise _no_key(config, f"there is none: {self._obstacle}")
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # requests to end the run in order
                stack.callback(signal.signal, number, signal.signal(number, lambda *_: self._interrupt()))
            for front_ends, starts in (
                (service.streams, self._streams),
                (service.controls, self._controls),
                (service.fronts, self._windows),
            ):
                stack.callback(front_ends.close)
                for start in starts:
                    front_ends.add(start())
            if requires_key:
                self._require_window(config)
            return self._run_sessions(config)

    def _require_window(self, config: SessionConfig) -> None:
        """Wait for a window that can hold the dead-man's key.

        Raises
        ------
        ConfigurationError
            If no window opens within `WINDOW_TIMEOUT`.
        """
        if self._service.fronts.await_key(WINDOW_TIMEOUT, lambda: self._interrupted):
            return
        if self._interrupted:
            raise KeyboardInterrupt
        display = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY")
        raise _no_key(config, f"no window could be opened (on the display {display})")

    def _run_sessions(self, config: SessionConfig) -> Outcome:
        first: Outcome | None = None
        while True:
            self._service.requested = None
            following: SessionConfig | None = None
            try:
                outcome, config = self._run_one(config)
            except StartCancelled:
                self._service.end(say.SessionEnded("cancelled before it began"))
                if not self._interrupted:
                    following = self._await_start(config, math.inf)
                if following is None and first is not None and self._again:
                    return first
                if following is None:
                    raise KeyboardInterrupt from None
                config = following
                continue
            first = first or outcome
            completed = outcome.reason == EndReason.COMPLETED
            if self._again:
                timeout = PAUSE if completed else LINGER
            else:  # after a stop by hand, the window stays open for the user
                timeout = math.inf if outcome.reason == EndReason.STOPPED else LINGER
            if not self._interrupted:
                following = self._await_start(config, timeout)
            repeated = self._again and completed and not self._interrupted and self._service.fronts.open
            if following is None and repeated:
                tables = config.as_dict()
                tables["session"]["record"] = self._again
                following = self._configure(tables)
            if following is None:
                return first if self._again and outcome.fault is None else outcome
            config = following

    def _run_one(self, config: SessionConfig) -> tuple[Outcome, SessionConfig]:
        """Run one session; return its outcome and its final configuration."""
        service, standby = self._service, self._standby
        self._standby = None  # a standby process serves one session

        def warn(line: str) -> None:
            """Report on the terminal and in the windows that parameters do not suit the device."""
            self._notify(f"advice: {line}")
            service.fronts.broadcast(say.Advised(line))

        session = Session(
            config,
            self._notify,
            warn,
            prepare=lambda words: service.fronts.broadcast(say.Preparing(words)),
            standby=standby,
        )
        if self._obstacle not in ("", HEADLESS):
            self._notify(f"no live view: {self._obstacle}.")
        service.begin(session)
        if self._caption:
            service.fronts.broadcast(say.Captioned(self._caption))
        if self._interrupted:
            session.interrupt()
        with preloading(session.preparing) if config.session.picture else contextlib.nullcontext():
            outcome = session.run(service.run_periodic_tasks, service.connections)
        service.end(say.SessionEnded(outcome.reason, outcome.summary, str(outcome.fault or "")))
        if config.session.picture:
            try:
                outcome.summary["picture"] = draw(Recording(Path(outcome.summary["recording"])))
            except (OSError, RecordingError) as error:
                self._notify(f"no picture: {error}")
                outcome.summary["picture"] = None
        return outcome, session.config

    def _await_start(self, config: SessionConfig, timeout: float) -> SessionConfig | None:
        """Wait until the user starts another session; None if they quit or are idle for `timeout` [s]."""
        until, service = time.monotonic() + timeout, self._service
        while not self._interrupted and time.monotonic() < until and service.fronts.open:
            if service.requested is not None:
                try:
                    return self._configure(tables_of_start(config, service.requested))
                except HapticError as error:
                    service.refuse_start(str(error))
            service.requested = None
            wait(service.connections(), HEARTBEAT_INTERVAL)
            service.run_periodic_tasks()
        return None

    def _configure(self, tables: dict[str, Table]) -> SessionConfig:
        hand = tables.get("hand", {})
        mouse = self._service.mouse
        if hand.get("name") == MOUSE and mouse is not None:
            tables = {**tables, "hand": {**hand, "target": mouse.path}}
        return complete(tables)

    def _interrupt(self) -> None:
        self._interrupted = True
        if self._service.session is not None:
            self._service.session.interrupt()


def _no_key(config: SessionConfig, obstacle: str) -> ConfigurationError:
    """Return the error for a session that requires the key of a window but has no window."""
    remedy = "leave --headless out" if "--headless" in obstacle else "start it where a window can be shown"
    demanded = config.spec.dead_man == "key"
    otherwise = "" if demanded else ", or choose 'button' (where the device has one) or 'none'"
    return ConfigurationError(
        f"envelope.dead_man = 'key': the space bar of the live view must be held, but {obstacle}; {remedy}{otherwise}."
    )


def tables_of_start(config: SessionConfig, start: say.Start) -> dict[str, Table]:
    """Return the tables of the requested session, keeping the settings of `config` that still apply."""
    tables = config.as_dict()
    tables["session"] |= {"model": start.model, "record": config.session.record}
    tables["hand"] = config.device_settings["hand"] if start.hand == config.hand else {"name": start.hand}
    same_device = start.device == config.device
    kept = {name: value for name, value in config.device_settings.items() if name != "hand"} if same_device else {}
    tables["device"] = {"name": start.device, **kept}
    same_causality = causality_of(start.device) is config.causality
    if start.model != config.session.model or not same_causality:
        tables["element"] = {}
    if not same_causality:
        tables["envelope"] = {}
        if "source" not in config.law:
            tables["law"] = {"name": config.law["name"]}
    if start.law not in {"", config.law["name"]}:
        tables["law"] = {"name": start.law}
    return tables
