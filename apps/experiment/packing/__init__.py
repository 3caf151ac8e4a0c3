"""Recordings of sessions in less room: packed without loss, and as they were again."""
