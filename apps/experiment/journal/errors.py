"""Errors of writing the journal."""

from __future__ import annotations


class JournalFault(OSError):
    """A record could not be written, or the journal was moved or changed by another process.

    The session must be stopped in order. All previous records are kept, and `haptics experiment resume` continues after
    them.
    """
