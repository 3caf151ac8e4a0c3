"""Check the laws and element equations at the recorded ticks of stretches with constant settings."""

from __future__ import annotations

import numpy as np

from apps.verify.classic import BRISTLES, IWAN, RIGID_MODELS, Bristle, Elements, Momentum, with_mass, without_mass
from apps.verify.envelope import History, braking, output_of, velocity_blur
from apps.verify.findings import Findings
from apps.verify.laws import Law, NotUnderstood, inclusion, law_of, length, slides_though_it_could_stick
from apps.verify.models import MODELS, Equation, Step, equations, mobility
from apps.verify.motion import Motions
from apps.verify.recorded import EPS, MOTION, Stretch, Window
from apps.verify.scenes import Surface, background
from apps.verify.walls import Touching, Walls, check_proxy, tables_of

_NO_SCENE = (NotUnderstood, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions that a malformed scene table may cause."""

_CLASSICS = (*RIGID_MODELS, *BRISTLES, IWAN)
"""Classic models with implemented equations, in addition to A to D."""


class Contact:
    """Checks of contacts, with the energy that their elements store.

    Attributes
    ----------
    findings : Findings
        Receives the findings.
    run, history
        Current window, and the state of the envelope in it.
    stored, doubt : (n,) array
        Energy stored by element and walls in each tick [J], and its error bound; nan where the rows do not determine
        it.
    walls : Walls
        Forces and state of the walls.
    """

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.run: Window
        self.history: History
        self.walls: Walls
        self._momentum, self._motions, self._elements = Momentum(), Motions(), Elements()
        self._touching = Touching()
        self.stored, self.doubt = np.zeros(0), np.zeros(0)

    def set_window(self, run: Window, history: History) -> None:
        """Set the next window."""
        self.run, self.history = run, history
        self.walls = self._touching.walls(run, history, self.findings)
        before = (self.stored, self.doubt)
        self.stored, self.doubt = np.full(run.count, np.nan), np.zeros(run.count)
        if run.skip:
            self.stored[: run.skip], self.doubt[: run.skip] = (values[-run.skip :] for values in before)

    def check(self, stretch: Stretch) -> None:
        """Check the ticks of a stretch."""
        settings = stretch.settings
        self._columns(stretch)
        if settings.get("model") == MOTION:
            self._motions.check(stretch, self.history, self.findings)
            return
        model, table = str(settings.get("model")), settings.get("element", {})
        numbers = table.items() if isinstance(table, dict) else ()
        element = {name: float(value) for name, value in numbers if isinstance(value, int | float)}
        law: Law | None = None
        if "scene" in settings:
            law = self._law_on_scene(stretch, model, element)
        else:
            try:
                law = law_of(settings.get("law", {}))
            except NotUnderstood as error:
                package = settings.get("law_package")
                whose = f", which belongs to the package {str(package)[:80]!r}" if package else ""
                self.findings.lack("law", f"the law cannot be checked{whose}: {error}.")
        if model not in MODELS:
            self._classic(stretch, model, element, law)
            return
        step = self._step(stretch, model)
        try:
            found = equations(model, step, element, self.run.period)
            Z = mobility(model, element, self.run.period)
        except (KeyError, ZeroDivisionError) as error:
            self.findings.lack("settings", f"version {stretch.version} of the settings lacks {error} of the element.")
            return
        self._enter(stretch, found)
        if law is not None:
            self._on_the_law(stretch, law, Z)
        # Store the energy of the element, K |e|^2/2 + M |v|^2/2, and its error bound.
        K, M = element.get("stiffness", 0.0), element.get("mass", 0.0)
        moving = step.output if model == "D" else step.velocity
        e, v = (step.stretch**2).sum(axis=1), (moving**2).sum(axis=1)
        self.stored[stretch.rows] = 0.5 * K * e + 0.5 * M * v + self.walls.store[stretch.rows]
        slack = M * np.sqrt(v) * step.blur[:, 0]
        if model == "D":
            size = np.sqrt((stretch["command"] ** 2).sum(axis=1))
            slack = slack + K * np.sqrt(e) * 8.0 * EPS * np.where(np.isfinite(size), size, 0.0)
        self.doubt[stretch.rows] = 4.0 * slack + 0.1 * self.walls.doubt[stretch.rows]

    def _law_on_scene(self, stretch: Stretch, model: str, element: dict[str, float]) -> Law | None:
        """Return the scene's law at the proxy after the previous tick, and check the recorded regions."""
        table, history, rows = stretch.settings["scene"], self.history, stretch.rows
        places = stretch.reference  # the proxy after the previous tick
        if self.run.impedance:
            fresh = history.fresh[rows]
            before = np.where(fresh[:, None], 0.0, stretch.back("displacement", 1))
            known = ~fresh & (np.arange(stretch.start, stretch.stop) > 0) & (history.after_bad[rows] == 0)
            known &= ~np.concatenate(([False], self.run.in_motion[:-1]))[rows]
            last = stretch.back("position", 1) - stretch.back("displacement", 1)
            places = np.where(known[:, None], last, stretch["position"] - before)
        try:
            ground = Surface(table, model, element)
            law = ground.law_at(places)
            found, unsure = ground.regions_at(places)
            own_law = background(table)
        except _NO_SCENE as error:
            self.findings.lack("scene", f"the scene cannot be checked: {error!s:.120}.")
            return None
        if own_law != stretch.settings.get("law"):
            self.findings.violate("settings", "the law is not that of the scene's background")
        wrong = (stretch["region"] != found) & ~unsure & stretch.good
        self.findings.where("region", stretch.tick, wrong, "the proxy was not in this region")
        return law

    def _on_the_law(self, stretch: Stretch, law: Law, Z: float) -> None:
        """Check that the forces satisfy the law, and that a contact sticks whenever it can."""
        force, velocity = stretch["friction_force"], stretch["sliding_velocity"]
        try:
            residual, bound = inclusion(law, force, velocity, Z)
        except NotUnderstood as error:
            self.findings.lack("law", f"the law cannot be checked: {error}.")
            return
        rests = ~velocity.any(axis=1)
        good, tick = stretch.good, stretch.tick
        words = "the friction force is more than the law holds at rest"
        self.findings.residual("law", "law at rest", tick, residual, bound, "N", words, good & rests)
        words = "the friction force is not that of the law at this velocity"
        self.findings.residual("law", "law while sliding", tick, residual, bound, "N", words, good & ~rests)
        wrong = good & slides_though_it_could_stick(law, force, velocity, Z)
        self.findings.where("law", tick, wrong, "the contact slides, though it could stick")
        stuck = stretch["sticking"] != 0
        self.findings.where(
            "sticking", tick, good & (stuck != rests), "the contact is said to stick or not, and its velocity differs"
        )

    def _columns(self, stretch: Stretch) -> None:
        """Check that the proxy agrees with the displacement (impedance) or the reference (admittance)."""
        if self.run.impedance:
            proxy, words = stretch["position"] - stretch["displacement"], "position less displacement"
        else:
            proxy, words = stretch["command"], "the reference"
        if "scene" not in stretch.settings:
            self.findings.where("region", stretch.tick, stretch["region"] != -1, "a region without a scene")
        if tables_of(stretch.settings):
            check_proxy(stretch, proxy, self.findings)
            return
        pressed = ~np.isnan(stretch["normal_force"])
        self.findings.where("normal force", stretch.tick, pressed, "a normal force where there is no wall")
        other = (stretch["proxy"] != proxy) & ~(np.isnan(proxy) & np.isnan(stretch["proxy"]))
        self.findings.where("proxy", stretch.tick, other.any(axis=1), f"the proxy is not {words}")

    def _step(self, stretch: Stretch, model: str) -> Step:
        """Return the quantities of the equations, as far as rows and history determine them."""
        history, rows, T = self.history, stretch.rows, self.run.period
        fresh = history.fresh[rows][:, None]
        force, velocity = stretch["friction_force"], stretch["sliding_velocity"]
        stretch_before = np.where(fresh, 0.0, stretch.back("displacement", 1))
        none = np.zeros((len(stretch), 1))
        if self.run.impedance:
            given, output, blurred = stretch["velocity"], self.walls.force[rows] - stretch["command_unlimited"], none
            anew = fresh | (history.after_bad[rows] > 0)[:, None]
            before = np.where(anew, given, stretch.back("sliding_velocity", 1))
            return Step(given, output, blurred, before, stretch_before, stretch["displacement"], force, velocity)
        felt_share = np.where(braking(history, rows), 1.0, history.share[rows])[:, None]
        given = felt_share * stretch["force"] + self.walls.force[rows]
        output, blurred = output_of(stretch), velocity_blur(stretch)
        stretched = stretch["displacement"]
        if model == "D":  # anti-windup removes the part that the reference could not follow
            stuck = ((stretch["sticking"] != 0) & stretch.good)[:, None]
            stretched = stretched + np.where(stuck, stretch["command_unlimited"] - stretch["command"], 0.0)
            relaxed = (history.share[rows] == 0.0)[:, None]
            stretched = np.where(relaxed, stretch_before + T * (output - velocity), stretched)
        return Step(given, output, blurred, stretch.last, stretch_before, stretched, force, velocity)

    def _classic(self, stretch: Stretch, model: str, element: dict[str, float], law: Law | None) -> None:
        """Check the equations of a classic model."""
        if model not in _CLASSICS:
            self.findings.lack("equations", f"the equations of the model {model[:40]!r} cannot be put to the rows.")
        if law is None or model not in _CLASSICS:
            return
        if model == IWAN and "scene" in stretch.settings:
            self.findings.lack("equations", "the elements of the model 'iwan' are not followed over a scene.")
            return
        step, T = self._step(stretch, model), self.run.period
        try:
            if model == IWAN:
                found = self._elements.outcome(law, stretch, step, element, T, self.history)
            elif model in BRISTLES:
                found = BRISTLES[model](Bristle(law, step, element, T))
            elif "mass" in element:
                masses = self._momentum.masses(stretch, self.history, step, model, element)
                found = with_mass(model, law, step, element, T, masses, self.run.impedance)
                self.doubt[stretch.rows] = 8.0 * element["mass"] * (length(masses.after) * masses.blur[:, 0])
            else:
                found = without_mass(model, law, step, element)
        except (KeyError, NotUnderstood) as error:
            self.findings.lack("settings", f"version {stretch.version} of the settings lacks {error}.")
            return
        self._enter(stretch, found.equations)
        self.stored[stretch.rows] = found.stored + self.walls.store[stretch.rows]
        wrong = stretch.good & ((stretch["sticking"] != 0) != found.sticks) & ~found.unsure
        words = "the contact is said to stick or not, and the model's rule says otherwise"
        self.findings.where("sticking", stretch.tick, wrong, words)

    def _enter(self, stretch: Stretch, found: list[Equation]) -> None:
        doubt = self.walls.doubt[stretch.rows][:, None]
        for one in found:
            rule = "law" if one.name == "friction force" else "equations"
            bound = one.bound + doubt if one.unit == "N" else one.bound
            self.findings.residual(rule, one.name, stretch.tick, one.residual, bound, one.unit, one.words, stretch.good)
