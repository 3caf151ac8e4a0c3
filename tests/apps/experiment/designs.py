"""Experiments for tests, as text that may be changed."""

WEBER = """\
[experiment]
name = "weber"
task = "discrimination"
seed = 7

[session]
model = "C"

[device]
name = "virtual-joystick"

[hand]
points = [[-0.03, 0.0], [0.03, 0.0]]
rest_force = 0.0
rest_grip = 1.0
rest = 0.4

[law]
name = "coulomb"

[stimulus]
axis = "law.force"

[[conditions]]
name = "1 N"
reference = 1.0

[[conditions]]
name = "2 N"
reference = 2.0
procedure = { most_trials = 3 }

[procedure]
kind = "staircase"
start = 0.5
minimum = 0.02
maximum = 2.0
reversals = 20
most_trials = 4

[catch]
easy = 0.2

[trials]
block = 5

[exploration]
start = [-0.03, 0.0]
strokes = 2
least_speed = 0.025
greatest_speed = 0.2

[response]
keys = { "1" = ["1", "left"], "2" = ["2", "right"] }
"""


def changed(folder, old="", new="", text=WEBER):
    """Write the experiment with `old`, which must be in it, replaced by `new`; return the file."""
    assert old in text
    path = folder / "weber.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


def friction_file(x, y, viscosity=1.0, reach=(0.02, 0.02)):
    """Return a friction file of a joystick with Coulomb levels [N], their intervals and a viscosity [N s/m]."""
    text = '[provenance]\ndevice = "virtual-joystick"\n'
    for axis, level, half in (("x", x, reach[0]), ("y", y, reach[1])):
        text += f'[joint.{axis}]\nrotary = false\n[joint.{axis}.friction]\nmodel = "coulomb-viscous"\n'
        text += f"coulomb_force_n = {level}\nviscosity_ns_per_m = {viscosity}\n[joint.{axis}.friction.interval_95]\n"
        text += f"coulomb_force_n = [{level - half:g}, {level + half:g}]\n"
        text += f"viscosity_ns_per_m = [{0.9 * viscosity:g}, {1.1 * viscosity:g}]\n"
    return text
