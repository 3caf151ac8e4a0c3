"""What goes wrong with a journal while it is written."""

from __future__ import annotations


class JournalFault(OSError):
    """The disk did not take a record, or the journal is not where and as it was left: the session must end in order.

    Everything before that record is kept; `haptics experiment resume` goes on from there.
    """
