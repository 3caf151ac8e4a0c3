"""Construction and validation of a session from the command line and a TOML file.

A setting has a table and a name, such as ``law.force``; `TABLES` lists the tables. Values given with ``--set`` override
the file, and options such as ``--rate`` override both. All values are in SI units.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.settings.models import (
    MODELS,
    TEXTURE,
    WALL,
    Table,
    causality_of,
    device_settings,
    element_defaults,
    is_name,
    law_on,
    law_table,
    pair,
    require_known,
    scene_of,
    with_background,
    with_scene_in_session,
)
from devices.faults import parse_fault
from haptics.errors import AmbiguousLawWarning, ConfigurationError
from haptics.files import parse_toml, read_toml, sha256_of
from haptics.recording.certificate import Fitness
from haptics.servo.realtime import RealTimeSettings
from haptics.settings import bounded, build, check, choice, documented, flag, string, unknown_name, unrestricted

if TYPE_CHECKING:
    from haptics.clock import Clock
    from haptics.design.measured import Measured
    from haptics.device import Causality, Device, DeviceSpec
    from haptics.elements.models import Element
    from haptics.rendering.envelope import Limits
    from haptics.rendering.programs import SceneElement
    from haptics.scenes import Scene

_FILES = (
    *(("law", "file"), ("session", "scene"), ("session", "measured")),
    *(("device", "parameters"), ("device", "friction_parameters")),
)
_LAW_NAMES = {"name", "file"}
"""Keys of a law table that select the law."""

FORMS = ("impedance", "admittance")
"""Tables with model and element for devices of this causality, used if no model is given."""

TABLES = (
    *("session", "device", "hand", "law", "scene", "element", "envelope", "servo", "fitness"),
    *(*FORMS, "provenance"),
)
"""Tables of a session. The content of ``provenance`` is not checked and has no effect."""

LONGEST = 1e7
"""Maximum planned duration of a run [s]."""

_FAULTS_ALLOWED = "a list of texts NAME@SECONDS, such as ['nan@2']"


@documented
@dataclass(frozen=True)
class SessionSettings:
    """Settings of the table ``session``: model, rate, duration, scene, faults, and recording."""

    model: str = string("", allowed=", ".join(MODELS), doc="friction element; by default the one that suits the device")
    rate: float = bounded(1000.0, minimum=10.0, maximum=10000.0, unit="Hz", doc="servo rate")
    duration: float | None = unrestricted(
        None, "a time greater than 0 s", doc="length of the run; by default it runs until stopped"
    )
    seed: int = bounded(1, minimum=0, maximum=2**62, unit="", doc="seed of the random numbers of a virtual device")
    record: str = string("recordings", allowed="a folder", doc="folder in which each recording gets a separate folder")
    clock: str = choice(
        "wall",
        ("wall", "off"),
        doc="wall: real time; off: simulated time, as fast as possible (virtual devices only)",
    )
    picture: bool = flag(True, doc="draw a picture of the recording, which takes a second")
    measured: str = string(
        "",
        allowed="a file",
        doc="file of haptics calibrate device; advice uses it, and couplings beyond its boundary are refused",
    )
    scene: str = string(
        "",
        allowed="a scene file, or the name of a scene that is shipped",
        doc="parameters of the law by position (docs/how_to/scenes.md); also written `scene`",
    )
    faults: tuple[str, ...] = unrestricted((), _FAULTS_ALLOWED, doc="injected device faults (docs/faults.md)")

    def __post_init__(self) -> None:
        check(self, "session")
        require_known("model", self.model, MODELS)
        duration = self.duration
        if duration is not None and not (isinstance(duration, int | float) and 0.0 < duration < LONGEST):
            raise ConfigurationError(
                f"session.duration = {duration!r}: must be a time greater than 0 s and less than {LONGEST:g} s "
                f"({LONGEST / 86400:.0f} days). Leave it out for a run that lasts until it is stopped."
            )
        if not self.record:
            raise ConfigurationError(f"session.record = {self.record!r}: must be a folder.")
        faults: Any = self.faults
        if not isinstance(faults, list | tuple) or not all(isinstance(text, str) for text in faults):
            raise ConfigurationError(f"session.faults = {faults!r}: must be {_FAULTS_ALLOWED}.")
        for text in faults:
            parse_fault(text)
        object.__setattr__(self, "faults", tuple(faults))


@dataclass(frozen=True)
class SessionConfig:
    """A complete and validated session.

    Attributes
    ----------
    session : SessionSettings
        Model, rate, duration, seed, folder for recordings.
    device : str
        Backend name.
    causality : Causality
        Causality of the device, which determines the form of the model.
    device_settings : dict
        Settings of the device, including the table of the hand.
    law, element, envelope : dict
        Complete tables of parameters. With a scene, the law is its background law.
    servo : RealTimeSettings
        Real-time requests of the servo to the operating system.
    fitness : Fitness
        Timing limits for a fit run.
    scene : Scene or None
        Scene that determines the parameters of the law by position.
    parameter_file_hash, friction_file_hash, measured_file_hash : str or None
        SHA-256 of the files used, if any: device calibration, device friction, and `session.measured`.
    """

    session: SessionSettings
    device: str
    causality: Causality
    device_settings: Table
    law: Table
    element: Table
    envelope: Table = field(default_factory=dict)
    servo: RealTimeSettings = field(default_factory=RealTimeSettings)
    fitness: Fitness = field(default_factory=Fitness)
    scene: Scene | None = None
    parameter_file_hash: str | None = None
    friction_file_hash: str | None = None
    measured_file_hash: str | None = None

    @property
    def hand(self) -> str:
        """Name of the hand; empty for a device moved by a real hand."""
        hand = self.device_settings.get("hand", {})
        return str(hand.get("name", ""))

    # Derived objects are cached, since a configuration is immutable.

    @functools.cached_property
    def built_element(self) -> Element:
        """The element.

        Raises
        ------
        ConfigurationError
            If a parameter is not allowed, or the next force would not be unique (condition 15).
        """
        from haptics.elements.models import STEADIER
        from haptics.elements.tables import make_element
        from haptics.friction.laws import require_solvable

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AmbiguousLawWarning)
            element = make_element(self.session.model, self.law, self.element, 1.0 / self.session.rate, self.causality)
        if element.mobility > 0.0:
            require_solvable(element.law, element.mobility, STEADIER)
        if self.measured is not None and hasattr(element, "stiffness"):
            self.measured.require_held(element.coupling_stiffness, getattr(element, "damping", 0.0), element.period)
        return element

    @functools.cached_property
    def program(self) -> Element | SceneElement:
        """The element, combined with the scene if there is one, as executed by the servo.

        Raises
        ------
        ConfigurationError
            As for `built_element`; also if condition (15) fails anywhere in the scene.
        """
        from haptics.rendering.programs import SceneElement

        return self.built_element if self.scene is None else SceneElement(self.built_element, self.scene)

    @property
    def strongest_element(self) -> Element:
        """The element, with the law of the largest break-away force of a scene; advice refers to it."""
        element = self.built_element
        return element if self.scene is None else replace(element, law=self.scene.strongest)  # type: ignore[type-var]

    @functools.cached_property
    def measured(self) -> Measured | None:
        """Device measurements of ``haptics calibrate device``; None if no file is given.

        Raises
        ------
        ConfigurationError
            If the file cannot be used.
        """
        from haptics.design.measured import read_measured

        return read_measured(self.session.measured, self.device) if self.session.measured else None

    @property
    def known_spec(self) -> DeviceSpec:
        """Data sheet for advice, in which measured values replace the stated ones."""
        return self.spec if self.measured is None else self.measured.describe(self.spec)

    @functools.cached_property
    def made(self) -> tuple[Device, Clock]:
        """An unopened device and its clock, which does not wait. A servo process creates a separate device."""
        from devices import create_device
        from haptics.clock import Clock

        return create_device(self.device, self.device_settings, clock=(clock := Clock(1.0 / self.session.rate))), clock

    @functools.cached_property
    def spec(self) -> DeviceSpec:
        """The data sheet of the device."""
        return self.made[0].spec

    @functools.cached_property
    def limits(self) -> Limits:
        """The safety envelope."""
        from haptics.rendering.envelope import Limits

        return Limits.for_device(self.spec, self.envelope)

    def with_parameter(self, key: str, value: float) -> SessionConfig:
        """Return a validated copy with one parameter of the law, the element, all walls or all textures changed.

        Raises
        ------
        ConfigurationError
            If there is no such parameter or the value is not allowed.
        """
        if key not in self.parameters:
            raise unknown_name("parameter", key, self.parameters)
        table, _, name = key.partition(".")
        changed = self
        if table == "law":
            law = {**self.law, name: value}
            changed = replace(self, law=law, scene=with_background(self.scene, law))
        elif table == "element":
            changed = replace(self, element={**self.element, name: value})
        elif self.scene is not None:
            change = self.scene.with_walls if table == "wall" else self.scene.with_textures
            changed = replace(self, scene=change(**{name: value}))
        _ = changed.program  # validates the copy
        return changed

    @property
    def parameters(self) -> tuple[str, ...]:
        """Keys that `with_parameter` accepts: parameters of the law, the element, and all walls or textures."""
        names = [f"law.{name}" for name in self.law if name not in ("name", "source")]
        names += [f"element.{name}" for name in self.element]
        if self.scene is not None and self.scene.walls:
            names += [f"wall.{name}" for name in WALL]
        if self.scene is not None and any(region.texture for region in self.scene.regions):
            names += [f"texture.{name}" for name in TEXTURE]
        return tuple(names)

    def with_tables(self, tables: Mapping[str, Table]) -> SessionConfig:
        """Return a copy with another law, model or parameters, validated as a whole.

        Parameters
        ----------
        tables : mapping
            Changes to ``session.model``, ``law`` and ``element``, and a new ``scene``: a complete one, a name, or ""
            for none (`apps.settings.models`). A law given by name, a custom law, and the element of another model start
            from their defaults; all other values are kept. With a scene, ``law`` changes its background.

        Raises
        ------
        ConfigurationError
            If a setting is not allowed or cannot be changed during a run.
        """
        from haptics.rendering.rendering import require_pair

        scene = scene_of({"scene": tables["scene"]}) if "scene" in tables else self.scene
        allowed = {"session": ("model",), "law": None, "element": None, "scene": None}
        for name, table in tables.items():
            if name not in allowed:
                raise ConfigurationError(f"{name}: a run goes on with its own; start again for another one.")
            kept = [key for key in table if allowed[name] is not None and key not in (allowed[name] or ())]
            if kept:
                raise ConfigurationError(f"{name}.{kept[0]}: a run goes on with its own; start again for another one.")
        model = tables.get("session", {}).get("model", self.session.model)
        law, element = tables.get("law", {}), dict(tables.get("element", {}))
        if scene is not None and "scene" in tables:
            table = law_on(scene, law, self.causality)
        elif law:
            table = law_table({**law}, self.causality) if _LAW_NAMES & law.keys() else {**self.law, **law}
            scene = with_background(scene, table)
        else:
            table = self.law
        changed = replace(
            self,
            session=replace(self.session, model=model),
            law=table,
            scene=scene,
            element={
                **(self.element if model == self.session.model else element_defaults(model, self.causality)),
                **element,
            },
        )
        require_pair(changed.program, self.spec)
        return changed

    def as_dict(self) -> Table:
        """Return the configuration as plain tables, for the recording."""
        from haptics.scenes import scene_table

        session = self.session
        return {
            "session": {
                **{name: getattr(session, name) for name in ("model", "rate", "duration", "seed", "clock", "picture")},
                "faults": list(session.faults),
                **({"measured": session.measured} if session.measured else {}),
            },
            "device": {"name": self.device, **self.device_settings},
            "law": self.law,
            **({"scene": scene_table(self.scene)} if self.scene is not None else {}),
            "element": self.element,
            "envelope": self.envelope,
            "servo": asdict(self.servo),
            "fitness": asdict(self.fitness),
        }


def read_file(path: Path) -> dict[str, Table]:
    """Read a configuration file.

    Paths in it, such as ``law.file``, are relative to the folder of the file.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, is not TOML, or has an unknown table.
    """
    tables = read_toml(path, f"configuration file {path}")
    for name, table in tables.items():
        if name not in TABLES:
            raise unknown_name(f"table in {path}:", name, TABLES)
        if not isinstance(table, dict) and not (name == "scene" and isinstance(table, str)):
            raise ConfigurationError(f"{name} in {path}: must be a table, [{name}].")
    tables = with_scene_in_session(tables)
    for table, name in _FILES:  # relative to the file that names them
        named = tables.get(table, {}).get(name)
        if isinstance(named, str) and named and not (name == "scene" and is_name(named)):
            tables[table][name] = str(path.parent / named)
    return tables


def parse_assignment(text: str, allowed: Iterable[str] = TABLES) -> tuple[str, str, Any]:
    """Parse ``table.name=value`` of ``--set``, where the table must be one of `allowed`.

    The value is parsed as TOML, and used as plain text if it is not valid TOML.
    """
    key, equals, value = text.partition("=")
    table, dot, name = ("session.scene" if key.strip() == "scene" else key.strip()).partition(".")
    if not equals or not dot or not name:
        raise ConfigurationError(f"--set {text}: must have the form table.name=value, for instance law.force=3.")
    if table not in allowed:
        raise unknown_name("table of settings", table, allowed)
    value = value.strip()
    try:
        return table, name, parse_toml(f"value = {value}", f"--set {key.strip()}")["value"]
    except ConfigurationError:
        with contextlib.suppress(ValueError):  # a number that TOML rejects, such as .5 and 3.
            return table, name, float(value)
        return table, name, value


def assign(tables: dict[str, Table], table: str, name: str, value: Any) -> None:
    """Set one value in nested tables. A dotted `name` addresses inner tables (``device.hand.name``)."""
    target = tables.setdefault(table, {})
    *parents, last = name.split(".")
    for parent in parents:
        target = target.setdefault(parent, {})
        if not isinstance(target, dict):
            raise ConfigurationError(f"{table}.{name}: {parent} is a value, not a table.")
    target[last] = value


def gather(file: Path | None, assignments: Iterable[str]) -> dict[str, Table]:
    """Read the file, if any, and apply the assignments of ``--set``."""
    tables: dict[str, Table] = read_file(file) if file else {}
    for text in assignments:
        assign(tables, *parse_assignment(text))
    return tables


def complete(tables: Mapping[str, Table], *, controlled: bool = False) -> SessionConfig:
    """Fill in defaults, validate the settings, and return the session. No device is opened.

    Parameters
    ----------
    tables : mapping
        Tables of settings.
    controlled : bool
        Whether a program controls the run, so that a run in simulated time needs no duration.

    Raises
    ------
    ConfigurationError
        If a setting is invalid; the message contains the setting, its value and the allowed values.
    """
    from devices import is_virtual
    from haptics.rendering.rendering import require_pair

    scene = scene_of(tables)
    session = dict(tables.get("session", {}))
    device = dict(tables.get("device", {}))
    name = device.pop("name", "")
    session["model"], form = _model_and_form(tables, name, session.get("model", ""))
    name, session["model"] = pair(name, session["model"])
    settings = build(SessionSettings, session, "session")
    causality = causality_of(name)
    config = SessionConfig(
        session=settings,
        device=name,
        causality=causality,
        device_settings=device_settings(name, device, dict(tables.get("hand", {})), settings.seed, 1.0 / settings.rate),
        law=law_on(scene, dict(tables.get("law", {})), causality),
        scene=scene,
        element={**element_defaults(settings.model, causality), **form, **tables.get("element", {})},
        envelope=dict(tables.get("envelope", {})),
        servo=build(RealTimeSettings, tables.get("servo", {}), "servo"),
        fitness=build(Fitness, tables.get("fitness", {}), "fitness"),
        parameter_file_hash=_hash_of(device.get("parameters"), "device.parameters"),
        friction_file_hash=_hash_of(device.get("friction_parameters"), "device.friction_parameters"),
        measured_file_hash=_hash_of(settings.measured, "session.measured"),
    )
    if settings.clock == "off":
        obstacle = ""
        if not is_virtual(name):
            obstacle = f"{name} has a clock of its own: use a virtual device"
        elif config.hand == "mouse":
            obstacle = "the mouse moves by the clock: choose another hand"
        elif settings.duration is None and not controlled:
            obstacle = "there is nothing that would end it: give session.duration (--duration)"
        if obstacle:
            raise ConfigurationError(f"session.clock = 'off': {obstacle}.")
    program, _ = config.program, config.limits  # built once, so that errors are raised before the run
    require_pair(program, config.spec)
    return config


def _model_and_form(tables: Mapping[str, Table], device: str, model: str) -> tuple[str, Table]:
    """Return the model of a session and the element of its table in `FORMS`, empty if none applies.

    A model given explicitly takes precedence; the element then applies only if the model is the same.

    Raises
    ------
    ConfigurationError
        If a table has another key, no model, or a model of the other causality.
    """
    for name in FORMS:
        table = tables.get(name)
        if table is None:
            continue
        for key in table:
            if key not in ("model", "element"):
                raise unknown_name(f"key of [{name}]", key, ("model", "element"))
        fitting = [known for known, causalities in MODELS.items() if name in causalities]
        if table.get("model") not in fitting:
            raise unknown_name(f"{name}.model", str(table.get("model", "")), fitting)
        if not isinstance(table.get("element", {}), dict):
            raise ConfigurationError(f"{name}.element = {table['element']!r}: must be a table, [{name}.element].")
    form = tables.get(causality_of(pair(device, model)[0]), {})
    if model in ("", form.get("model")):
        return form.get("model", ""), dict(form.get("element", {}))
    return model, {}


def _hash_of(file: Any, setting: str) -> str | None:
    """Return the SHA-256 of the file named by `setting`, for the recording; None if unset."""
    if not isinstance(file, str) or not file:
        return None
    return sha256_of(file, f"{setting} = {file!r}")
