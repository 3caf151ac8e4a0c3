"""Generator of ``docs/settings.md`` from the declarations that validate the settings."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Container, Iterator

from apps.experiment.design import OWN_TABLES
from apps.experiment.forms.forms import FormSettings, ItemSettings, ScoreSettings
from apps.experiment.observers import ObserverSettings
from apps.experiment.procedures.settings import KINDS
from apps.experiment.settings import AnalysisSettings, ConditionSettings, PowerSettings
from apps.settings.config import SessionSettings
from apps.settings.models import element_defaults, law_defaults
from calibration.autotune.pushing import TABLE, Autotune
from devices.arm.body import ArmBody
from devices.arm.device import SENSORS
from devices.arm.device import ArmSettings as RealArmSettings
from devices.arm.motors.settings import OdriveSettings
from devices.arm.servo.settings import ServoSettings
from devices.emulated.falcon import EmulatedFalconSettings
from devices.emulated.forcedimension import EmulatedForceDimensionSettings
from devices.emulated.joystick import EmulatedStickSettings
from devices.emulated.settings import EmulationSettings
from devices.falcon.device import FalconSettings
from devices.forcedimension.device import ForceDimensionSettings
from devices.inverse3.device import Inverse3Settings
from devices.joystick.device import StickSettings
from devices.pantograph.device import PantographSettings
from devices.touch.device import TouchSettings
from devices.virtual.arm import ArmSettings
from devices.virtual.hands.registry import HANDS
from devices.virtual.joystick import JoystickSettings
from devices.virtual.wrench import WrenchSettings
from haptics.device import Causality
from haptics.elements.tables import LAWS, MODELS
from haptics.recording.certificate import Fitness
from haptics.rendering.envelope import Limits
from haptics.servo.realtime import RealTimeSettings
from haptics.settings import allowed_text

_INTRODUCTION = """# Settings

Every setting has a table and a name. Give them in a TOML file (`haptics run --config FILE.toml`), one by one
(`haptics run --set law.force=3`, repeatable), or as the options of `haptics run`; options win over `--set`, `--set`
over the file. All values are in SI units. What is not given has the default shown here.

A file for devices of both kinds has a model and an element for each, and a law that both share:

```toml
[law]
name = "coulomb"
force = 3.0

[impedance]                # used on a device that takes forces
model = "iwan"
element = { stiffness = 2000.0, stiff_share = 0.4 }

[admittance]               # used on a device that takes positions
model = "D"
element = { mass = 2.0, stiffness = 3000.0, damping = 100.0 }
```

They are used where no model is given. A model that is given (`--model`, `session.model`) wins; the element then applies
only if the model is the same. `[element]` and `--set element.NAME=VALUE` win over both. A table `[provenance]` may say
where the file comes from; a session ignores it.

This page is made from the declarations that also check the values:
`python -m apps.settings.reference > docs/settings.md`.
"""

_CUSTOM_LAW = """## Other laws

With `-closed-form` added to its name any of the laws above is solved by the approximation of the paper instead of
exactly (`law.name = "stribeck-closed-form"`), for comparison.

`law.file = "rubber.py"` names a Python file with one function, the level of a law of your own; its parameters are the
settings (`law.static`), with their defaults in the file. In a configuration file the name is that of a file beside it,
with `--set` that of one in the present folder:

```python
from haptics import friction_law


@friction_law
def rubber(speed, static=4.0, kinetic=3.0, width=0.2):
    return kinetic + (static - kinetic) / (1.0 + speed / width)
```
"""


_EXPERIMENTS = """## Experiments

The file of an experiment has the tables of a session, above, and those that follow. See
[Procedures, observers and power](experiments/procedures.md).
"""

_EMULATION = (
    "With `device.emulated=true` the real driver talks to an emulated device and takes these settings besides its own."
)

_KINDS = Causality.ADMITTANCE, Causality.IMPEDANCE


def pages() -> Iterator[str]:
    """Yield the reference, one section at a time."""
    yield _INTRODUCTION
    yield _section("session", "What is run, how fast, for how long", SessionSettings)
    for name, law in LAWS.items():
        defaults = " or ".join(_numbers(law_defaults(name, causality)) for causality in _KINDS)
        yield _section(
            "law", f'Friction law `law.name = "{name}"`', law, f"By default {defaults} (admittance, impedance)."
        )
    yield _CUSTOM_LAW
    for model, forms in MODELS.items():
        for causality, element in forms.items():
            title = f"Model {model}" + (f" as an {causality}" if len(forms) > 1 else "")
            defaults = _numbers(element_defaults(model, causality))
            remark = f"By default {defaults}." if defaults else "It has no parameters of its own."
            yield _section("element", title, element, remark, leave_out=("law", "period"))
    yield _section(
        "envelope", "Safety envelope", Limits, "By default the limits of the device, which are also the widest."
    )
    yield _section("servo", "What the servo asks the operating system for", RealTimeSettings)
    yield _section("fitness", "What a run may be like and still count as fit", Fitness)
    yield from _devices()
    for name, hand in HANDS.items():
        yield _section("hand", f'Hand `hand.name = "{name}"`', hand)
    yield _section(TABLE, "Tuning: `haptics calibrate device`", Autotune, "See [Tune a device](tuning.md).")
    yield _EXPERIMENTS
    for name, cls in OWN_TABLES.items():
        yield _section(name, f"Experiment: `{name}`", cls)
    yield _section("conditions", "Experiment: each of `conditions`", ConditionSettings)
    yield _section("forms", "Experiment: each of `forms`", FormSettings, "See [Questionnaires](experiments/forms.md).")
    yield _section("forms.items", "Experiment: each of `forms.items`", ItemSettings)
    yield _section("forms.scores.NAME", "Experiment: each of `forms.scores`", ScoreSettings)
    for kind, procedure in KINDS.items():
        yield _section("procedure", f'Experiment: `procedure.kind = "{kind}"`', procedure)
    yield _section("observer", "Experiment: `observer`", ObserverSettings)
    yield _section("power", "Experiment: `power`", PowerSettings)
    yield _section("analysis", "Experiment: `analysis`", AnalysisSettings)


def _devices() -> Iterator[str]:
    yield _section("device", "`virtual-joystick`", JoystickSettings)
    yield _section("device", "`virtual-arm`", ArmSettings)
    yield _section("device.arm", "The arm itself: `virtual-arm`, `arm`", ArmBody, "See [The arm](arm.md).")
    yield _section("device.servo", "Servo of the arm: `virtual-arm`, `arm`", ServoSettings)
    yield _section("device.sensor", "Force sensor of `virtual-arm`", WrenchSettings)
    yield _section("device", "`pid-joystick`", StickSettings, "See [Joysticks](joysticks.md).")
    yield _section("device", "`pantograph`", PantographSettings, "See [The pantograph](pantograph.md).")
    yield _section("device", "`inverse3`", Inverse3Settings, "See [The Inverse3](inverse3.md).")
    page = "See [Force Dimension devices](force_dimension.md)."
    yield _section("device", "`forcedimension`", ForceDimensionSettings, page)
    yield _section("device", "`touch`", TouchSettings, "See [Laboratory devices](lab_devices.md).")
    yield _section("device", "`falcon`", FalconSettings, "See [The Falcon](falcon.md).")
    yield _section("device", "`arm`", RealArmSettings, "See [The arm](arm.md).")
    names = "Emulated `pid-joystick`, `pantograph`, `inverse3`, `forcedimension`, `touch`, `falcon`, `arm`"
    yield _section("device", names, EmulationSettings, _EMULATION)
    for name, emulated, own in (
        ("pid-joystick", EmulatedStickSettings, StickSettings),
        ("forcedimension", EmulatedForceDimensionSettings, ForceDimensionSettings),
        ("falcon", EmulatedFalconSettings, FalconSettings),
    ):
        common = {field.name for cls in (EmulationSettings, own) for field in dataclasses.fields(cls)}
        yield _section("device", f"Emulated `{name}` only", emulated, leave_out=common)
    yield _section("device.motors", "Motors of `arm`", OdriveSettings)
    for name, (sensor, _) in SENSORS.items():
        yield _section("device.sensor", f'Force sensor of `arm`, `device.sensor.name = "{name}"`', sensor)


def _numbers(table: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in table.items())


def _section(table: str, title: str, cls: type, remark: str = "", leave_out: Container[str] = ()) -> str:
    rows = ""
    for field in dataclasses.fields(cls):
        if field.name in leave_out:
            continue
        default = "-"
        if field.default_factory is not dataclasses.MISSING:
            default = f"`{field.default_factory()!r}`"
        elif field.default not in (dataclasses.MISSING, "", None, ()):
            default = f"`{field.default:g}`" if isinstance(field.default, float) else f"`{field.default}`"
        rows += f"| `{table}.{field.name}` | {default} | {allowed_text(field)} | {field.metadata.get('doc', '')} |\n"
    heading = f"## {title}\n\n" + (f"{remark}\n\n" if remark else "")
    return f"{heading}| setting | default | allowed | meaning |\n|---|---|---|---|\n{rows}"


if __name__ == "__main__":
    sys.stdout.write("\n".join(pages()))
