"""What the driver of the Inverse3 does at 1 kHz in front of the emulated service, as figures.

``python -m tests.devices.inverse3.figures [SECONDS]`` prints them. They are of this machine, emulation included.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from tests.processes import NO_PICTURE, ROOT
from tests.system.parallel.commands import haptics

# Of the friction law [N].
FORCE = 3.0

COUPLING = ("--set", "element.stiffness=1500", "--set", "element.damping=4")
STROKES = ("--set", "hand.tremor=0", "--set", "hand.speed=0.1", "--set", "hand.rest=0", "--set", "hand.stiffness=1000")
PUSH = ("--set", "hand.name=scripted-force", "--set", "hand.script=[[0,0,0],[0.5,1.5,0.8],[99,1.5,0.8]]")
# Step of the emulated position [m].
COUNT = 1e-5


def session(folder, seconds, *more):
    """Run model C at 1 kHz on the emulated device; return the answer of the command and the recording."""
    device = ("--device", "inverse3", "--set", "device.emulated=true", "--model", "C", "--set", f"law.force={FORCE}")
    how = ("--duration", f"{seconds:g}", "--headless", "--json", "--record", str(folder), *NO_PICTURE)
    done = haptics("run", *device, *COUPLING, *how, *more, folder=ROOT)
    answer = json.loads(done.stdout)
    return answer, Recording(Path(answer["recording"]))


def settled(rows):
    """Return the rows with nothing between the element and the device."""
    return rows[(rows["status"] == 0) & (rows["permission"] == 0) & (rows["time"] > 0.5)]


def sliding(rows):
    """Return the force while it slides: commanded, and as the service gives it."""
    rows = settled(rows)
    slides = (rows["sticking"] == 0) & (np.hypot(*rows["velocity"].T) > 0.03)
    told, given = np.hypot(*rows["command"][slides].T), np.hypot(*rows["channel_service_force"][slides].T)
    return {
        "ticks": int(slides.sum()),
        "commanded_n": float(np.median(told)),
        "given_n": float(np.median(given)),
        "given_std_n": float(given.std()),
    }


def main(arguments):
    """Print the figures as one JSON object."""
    seconds = float(arguments[0]) if arguments else 10.0
    with tempfile.TemporaryDirectory() as folder:
        answer, moving = session(Path(folder) / "sliding", seconds, *STROKES)
        _, held = session(Path(folder) / "sticking", seconds, *PUSH)
        place = held.rows[held.rows["time"] > 1.5]["position"]
        ages = 1e3 * moving.rows["sample_age"]
        keys = ("ticks", "skipped", "lost_ticks", "overruns", "realtime", "tick_us", "period_error_us")
        figures = {
            **{key: answer[key] for key in keys},
            "sample_age_ms": dict(zip(("p50", "p99", "max"), np.percentile(ages, (50, 99, 100)).round(3), strict=True)),
            "sliding": sliding(moving.rows),
            # From the second second to the last, of a handle that friction holds.
            "drift_counts": float(np.hypot(*(place[-200:].mean(axis=0) - place[:200].mean(axis=0)))) / COUNT,
            "held_oldest_sample_ms": float(1e3 * held.rows["sample_age"].max()),
            "sticking_share": float((held.rows["sticking"][1500:] == 1).mean()),
            "height_mm": float(1e3 * np.median(moving.rows["channel_height"])),
            "mismatches": [verify(one).mismatches for one in (moving, held)],
        }
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
