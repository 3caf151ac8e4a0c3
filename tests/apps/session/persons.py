"""Front ends for tests: one in this process that says what it is told to, and programs behind real pipes."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing.connection import Connection
from typing import Any

from apps.front_ends.messages import HOLD_EVERY, HoldKey, Quit


class Person:
    """A front end that says what it was given, and keeps what it was told."""

    def __init__(self, *says: Any, holds_key: bool = True) -> None:
        self.open, self.holds_key = True, holds_key
        self.says, self.told = list(says), []  # type: list[Any], list[Any]
        self.dies = self.closed = False

    @property
    def connection(self) -> Any:
        raise AssertionError("nobody waits for it in these tests")

    def send(self, message: Any) -> None:
        self.told.append(message)

    def messages(self) -> list[Any]:
        said, self.says = self.says, []
        self.open = not self.dies
        return said

    def close(self) -> None:
        self.closed = True


def listen(connection: Connection[Any, Any], file: str) -> None:
    """Write down what is said, a line each, until there is nobody who says anything, or `Quit`."""
    with open(file, "w", buffering=1) as lines:
        try:
            while (message := connection.recv()) != Quit():
                lines.write(f"{message!r}\n")
        except EOFError:
            lines.write("alone\n")


def repeat(connection: Connection[Any, Any], *messages: Any) -> None:
    """Say the messages, and then, again and again, that the key is held; listen to nothing."""
    for message in messages:
        connection.send(message)
    while True:
        connection.send(HoldKey(True))
        time.sleep(HOLD_EVERY)


def babble(connection: Connection[Any, Any]) -> None:
    """Talk without end, and listen to nothing."""
    while True:
        connection.send("and another thing")


def die(connection: Connection[Any, Any], said: Any) -> None:
    """Say something and be killed."""
    connection.send(said)
    os.kill(os.getpid(), signal.SIGKILL)
