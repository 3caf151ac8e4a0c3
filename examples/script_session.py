"""A session from a script: the friction law changes three times, and the recording is plotted.

Usage: python script_session.py [DEVICE]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import haptics

LAWS = (haptics.Coulomb(1.0), haptics.Coulomb(4.0), haptics.Stribeck(2.0, 3.0, 0.1))
device = sys.argv[1] if len(sys.argv) > 1 else "virtual-joystick"

with haptics.open_session(device, law=haptics.Coulomb(2.5), hand="minimum-jerk") as session:
    session.wait(1.0)
    for number, law in enumerate(LAWS, start=1):
        session.mark(number)
        tick = session.configure(law=law, gate=True)
        session.wait(1.0)
        force = session.since(tick)["friction_force"]
        print(f"tick {tick}: {law}, up to {abs(force).max():.2f} N")

recording = session.recording
picture = Path("session.png")
recording.plot().savefig(picture)
print(f"{len(recording)} ticks in {recording.folder}; certificate fit: {session.certificate['fit']}; {picture}")
