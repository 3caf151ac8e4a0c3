"""The table of what happens when a device, or a process, goes bad: made by running it (`tests.safety_runs`).

``python -m tests.safety_table`` prints the table of ``docs/faults.md``; with ``--write`` it puts it there.
"""

import argparse
import math
import tempfile
from pathlib import Path

from apps.settings.config import complete
from devices.faults import FAULTS
from haptics.rendering.envelope import FADE_OUT
from haptics.servo.background import FROZEN
from haptics.servo.job import LOOK_EVERY
from haptics.servo.run import HEARTBEAT_EVERY
from tests.safety_runs import DEVICES, LASTING, PERIOD, PHASES, find_all

RAISING = ("read-error", "write-error", "unplug")
NUMBERS = ("nan", "infinite")
FATAL = (*RAISING, *NUMBERS, "stale", "jump", "delay-20ms")
"""Faults that end a run."""

HARMLESS = ("delay-1ms", "delay-5ms", "duplicate", "late", "out-of-order", "quantisation", "saturation")
"""Faults with small errors of the samples, with which a run goes on."""

UNSEEN = ("stuck", "ignored")
"""Faults that no single sample shows. An arm that does not follow its reference is detected."""

AFTER_ALL = ("dropout", "hang")
"""Faults that end before the run."""


DOCUMENT = Path(__file__).parents[1] / "docs" / "faults.md"
BEGIN, END = "<!-- the table is made by python -m tests.safety_table --write -->", "<!-- end of the table -->"


def markdown(findings):
    """Return the tables."""
    lines = [
        "| fault | device | at the start | while it sticks | while it slides | largest command |",
        "|---|---|---|---|---|---|",
    ]
    for fault in FAULTS:
        for device in DEVICES:
            group = [f for f in findings if (f.case.fault, f.case.device) == (fault, device)]
            cells = [_cell([f for f in group if f.case.phase == phase]) for phase in PHASES]
            largest = max(f.largest for f in group)
            lasting = f" for {LASTING[fault] * 1e3:.0f} ms" if fault in LASTING else ""
            lines.append(
                f"| `{fault}`{lasting} | {device} | {' | '.join(cells)} | {math.ceil(100 * largest - 1e-6)} % |"
            )
    return "\n".join([*lines, "", *_processes()])


def _cell(findings):
    """Say what the models of a device do; one of them for all where they do the same."""
    said = {f.case.model: f.words() for f in findings}
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return "; ".join(f"{model}: {words}" for model, words in said.items())


def _processes():
    """Return the table of what can happen to the processes; the bounds follow from the times in the code."""
    watchdog = complete({"device": {"name": "virtual-joystick"}}).spec.watchdog
    assert watchdog is not None
    fade = PERIOD * (math.ceil(FADE_OUT / PERIOD) + 1)
    lost = f"{_ms(LOOK_EVERY + PERIOD + fade + 2 * PERIOD)}"  # noticed, faded, and two ticks for the safe output
    own = f"{_ms(watchdog)} after its last command, by its own watchdog"
    ended = f"within {_ms(2 * HEARTBEAT_EVERY)}"
    return [
        "| what happens to the processes | safe output at the latest after | in the end |",
        "|---|---|---|",
        f"| the application is killed | {lost} | the servo completes the recording |",
        f"| the application is stopped | {lost} | when it goes on: status 4, recording complete |",
        f"| the servo is killed | {own} | status 4, recording kept |",
        f"| the servo is stopped | {own} | the application kills it {ended}; status 4, recording kept |",
        f"| a call does not come back (`hang`) | {own} | the application ends it after {FROZEN:g} s; status 4, "
        "recording kept |",
    ]


def _ms(seconds):
    return f"{math.ceil(round(seconds * 1e3, 6)):d} ms"


def documented():
    """Return the table that is in the document."""
    _, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    return rest.partition(END)[0].strip()


def _write(table):
    before, begin, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{DOCUMENT} lacks the lines {BEGIN} and {END}")
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")


def main():
    """Print the table, or put it into the document."""
    parser = argparse.ArgumentParser(prog="python -m tests.safety_table", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"put it into {DOCUMENT.name}")
    write = parser.parse_args().write
    with tempfile.TemporaryDirectory() as folder:
        table = markdown(find_all(Path(folder)))
    if write:
        _write(table)
    else:
        print(table)  # noqa: T201


if __name__ == "__main__":
    main()
