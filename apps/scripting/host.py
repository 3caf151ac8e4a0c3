"""Process that runs one session for a script: ``python -m apps.scripting.host DESCRIPTOR``.

The script (`apps.scripting.session`) starts this process and is one of its front ends. The script may therefore block,
fail or be stopped without delaying a tick. The process ends when the run has ended and the script has closed its end of
the pipe.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from haptics.servo.standby import Standby


@dataclass(frozen=True)
class Order:
    """Session that a script requests.

    Attributes
    ----------
    tables : dict
        Tables of the session (`apps.settings.config`).
    hand : str
        Name of a hand, or a file with a recorded path; empty for the hand of the tables.
    view : bool
        Whether to open the live view.
    stop_on_exit : bool
        Whether the run ends with the script.
    """

    tables: dict[str, Any]
    hand: str = ""
    view: bool = False
    stop_on_exit: bool = True


def main() -> int:
    """Run the session that the script requests through the pipe with the given descriptor."""
    connection: Connection[Any, Any] = Connection(int(sys.argv[1]))
    with Standby() as standby, contextlib.suppress(EOFError, OSError):  # the script has ended
        order = connection.recv()
        from haptics.errors import HapticError

        try:
            run(order, connection, standby)
        except HapticError as error:
            connection.send(error)
    return 0


def run(order: Order, connection: Connection[Any, Any], standby: Standby) -> None:
    """Run the session of `order`, and serve the script and the windows.

    Raises
    ------
    HapticError
        If a setting is wrong, or the device cannot be opened.
    """
    from apps.front_ends import messages as say
    from apps.front_ends.front_end import FrontEnd
    from apps.session.run import Session
    from apps.session.service import Mouse, Service
    from apps.settings.config import complete
    from apps.view.launch import start_view, window_obstacle
    from devices.virtual.hands.registry import hand_settings
    from haptics.errors import ConfigurationError, DeviceFault

    parent = os.getppid()

    class ScriptFrontEnd(FrontEnd):
        """The script, which has also ended if this process has another parent.

        A process that the script has forked may keep its end of the pipe open.
        """

        def messages(self) -> list[Any]:
            received = super().messages()
            if os.getppid() != parent:
                self._set_closed()
            return received

    class ScriptService(Service):
        """Service that ends the run if a required script has ended."""

        def handle_loss(self) -> None:
            if script.open:
                super().handle_loss()
            elif script.required and self.session is not None:
                self.session.fail(
                    DeviceFault(
                        "the script that controls the session has ended without closing it: the run was stopped, and "
                        "the device was brought to its safe output."
                    )
                )

    tables = dict(order.tables)
    if order.hand:
        tables["hand"] = {**tables.get("hand", {}), **hand_settings(order.hand)}
    script = ScriptFrontEnd(connection, required=order.stop_on_exit)
    service = ScriptService(lambda line: None)
    with contextlib.ExitStack() as stack:
        stack.callback(service.fronts.close)
        if tables.get("hand", {}).get("name") == "mouse":
            if not order.view:
                raise ConfigurationError("hand = 'mouse': needs the live view; open the session with view=True.")
            service.mouse = stack.enter_context(Mouse())
            tables["hand"] = {**tables["hand"], "target": service.mouse.path}
        config = complete(tables, controlled=True)
        if config.limits.dead_man == "key" and not order.view:
            raise ConfigurationError(
                "envelope.dead_man = 'key': the space bar of the live view must be held; open the session with "
                "view=True."
            )
        service.fronts.add(script)
        if order.view:
            obstacle = window_obstacle()
            if obstacle is not None:
                raise ConfigurationError(f"view=True: no window can be shown ({obstacle}).")
            service.fronts.add(start_view("auto"))
        session = Session(
            config,
            lambda line: None,
            lambda line: service.fronts.broadcast(say.Advised(line)),
            lambda words: service.fronts.broadcast(say.Preparing(words)),
            standby=standby,
            quiet=True,
            steps=config.session.clock == "off",
        )
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: session.interrupt())
        service.begin(session)
        outcome = session.run(service.run_periodic_tasks, service.connections)
        service.end(say.SessionEnded(outcome.reason, outcome.summary, str(outcome.fault or "")))
        while script.open:  # it may be busy, and the pipe still has messages for it
            wait([connection], 0.1)
            service.run_periodic_tasks()


if __name__ == "__main__":
    sys.exit(main())
