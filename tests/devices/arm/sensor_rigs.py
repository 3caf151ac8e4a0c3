"""What the tests of force sensors share."""

import time

LOAD = (1.5, -2.0, 3.25, 0.125, -0.25, 0.5)
# Patience with a busy machine [s].
LONG = 20.0


def load():
    return LOAD


def wait_until(condition, patience=LONG):
    """Wait for something that must come about, however busy the machine."""
    latest = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < latest, "it did not come about"
        time.sleep(1e-3)
