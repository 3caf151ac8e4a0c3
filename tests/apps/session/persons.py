"""Front ends for tests: one in this process with scripted messages, and programs behind real pipes."""

import os
import signal
import time

from apps.front_ends.messages import HOLD_EVERY, HoldKey, Quit


class Person:
    """Front end that sends scripted messages and keeps the received ones."""

    def __init__(self, *says, holds_key=True):
        self.open, self.holds_key = True, holds_key
        self.says, self.told = list(says), []  # type: list[Any], list[Any]
        self.dies = self.closed = False

    @property
    def connection(self):
        raise AssertionError("these tests do not wait for it")

    def send(self, message):
        self.told.append(message)

    def messages(self):
        said, self.says = self.says, []
        self.open = not self.dies
        return said

    def close(self):
        self.closed = True


def listen(connection, file):
    """Write received messages to a file, one per line, until the pipe is closed or `Quit` arrives."""
    with open(file, "w", buffering=1) as lines:
        try:
            while (message := connection.recv()) != Quit():
                lines.write(f"{message!r}\n")
        except EOFError:
            lines.write("alone\n")


def repeat(connection, *messages):
    """Send the messages, then report the key as held forever; never receive."""
    for message in messages:
        connection.send(message)
    while True:
        connection.send(HoldKey(True))
        time.sleep(HOLD_EVERY)


def babble(connection):
    """Send messages forever; never receive."""
    while True:
        connection.send("and another thing")


def die(connection, said):
    """Send a message and kill this process."""
    connection.send(said)
    os.kill(os.getpid(), signal.SIGKILL)
