"""Start of a stream by the session."""

from __future__ import annotations

from apps.front_ends.front_end import ProcessFrontEnd
from apps.stream.address import StreamAddress


def open_stream(stream: StreamAddress) -> ProcessFrontEnd:
    """Start the process that sends a stream (`apps.stream.process`)."""
    from apps.stream.process import main

    return ProcessFrontEnd(main, (stream,), name=f"haptics stream {stream.kind}", holds_key=False)
