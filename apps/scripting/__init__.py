"""Sessions that are controlled by a Python script, a notebook or another program.

`session` is the script's side (`haptics.open_session`), `host` the process that runs the session for it.
"""
