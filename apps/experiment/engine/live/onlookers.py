"""Read-only followers of the blocks of a session: streams to other programs, with or without screens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from apps.experiment.design import Design
from apps.experiment.engine.live.stage import Followers
from apps.experiment.journal import Journal
from apps.front_ends import messages as say
from apps.front_ends.front_end import FrontEnd
from apps.session.application import print_status
from apps.session.run import Session
from apps.session.service import Service


class Onlookers(Followers, Service):
    """Notifies front ends and streams of every block.

    Parameters
    ----------
    streams : FrontEnd
        Front ends that only receive messages.
    """

    def __init__(self, *streams: FrontEnd) -> None:
        super().__init__(print_status)
        for stream in streams:
            self.streams.add(stream)

    def begin(self, session: Session) -> None:
        """Notify the front ends of a new block."""
        Service.begin(self, session)

    def end(self, message: say.SessionEnded | None = None) -> None:
        """Notify the front ends of the end of a block."""
        Service.end(self, message or say.SessionEnded("stopped"))

    def connections(self) -> tuple[Any, ...]:
        """Return the connections to wait for."""
        return Service.connections(self)

    def run_periodic_tasks(self) -> None:
        """Handle pending requests."""
        Service.run_periodic_tasks(self)


@contextmanager
def lsl_of(design: Design, journal: Journal, wanted: bool) -> Iterator[tuple[FrontEnd, ...]]:
    """Run the process that streams a session by the Lab Streaming Layer, if `wanted`."""
    if not wanted:
        yield ()
        return
    from apps.experiment.exports.lsl import start_outlet

    config = design.session
    outlet = start_outlet(journal.place.journal, str(config.spec.causality), config.session.rate)
    try:
        yield (outlet,)
    finally:
        outlet.close()
