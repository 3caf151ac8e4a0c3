"""Validation of an experiment against its device.

Errors state the limits of the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from apps.experiment.procedures import procedure_settings
from apps.experiment.trial import TASKS
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from apps.experiment.design.design import Design
    from apps.experiment.design.settings import ConditionSettings
    from apps.experiment.design.source import Source

_LEVELS = ("minimum", "levels", "starts", "level")
_HIGHEST = ("maximum", "levels", "starts", "level")

STEPS_OF_A_LEVEL = 1.0
"""Minimum size of the smallest level, in steps of the device's force."""

_FORCES = ("law.force", "law.kinetic_force", "law.static_force")
"""Axes that are friction forces [N]."""


def check_against_device(source: Source, design: Design, number: int) -> None:
    """Raise if condition `number` has levels that the device cannot render.

    Raises
    ------
    ConfigurationError
        With line and key in the file, and the levels that can be rendered.
    """
    condition = design.conditions[number]
    lowest, highest = levels_of(design.procedure_of(condition))
    where = ("conditions", number, "procedure") if condition.procedure else ("procedure",)

    def at(names: tuple[str, ...]) -> tuple[Any, ...]:
        """Return the path of the first of these keys, in the procedure of the condition or the common one."""
        for way, table in ((where, condition.procedure), (("procedure",), design.procedure)):
            found = next((name for name in names if name in table), None)
            if found is not None:
                return (*way, found)
        return where

    with source.telling(*at(_HIGHEST)):
        for level in _all_highest(design, condition, highest):
            design.config(condition, condition.reference + level)
            _require_reachable(design, condition.reference + level)
    with source.telling(*at(_LEVELS)):
        _require_fine(design, condition.reference, lowest)
    with source.telling("experiment", "task"):
        _require_above_own_friction(design, condition.reference, lowest)


def _all_highest(design: Design, condition: Any, highest: float) -> list[float]:
    """Return the highest level of a condition and the levels of its catch and practice trials."""
    levels = [highest]
    if design.task.responses:
        levels += [design.easy_level(condition)] if design.catch.easy else []
        levels += [design.practice_level(condition)] if design.practice.window else []
    return levels


def force_per_unit(design: Design) -> float | None:
    """Return the force [N] per unit of the axis at the lowest speed of the hand, or None if unknown."""
    if design.axis in _FORCES:
        return 1.0
    if design.axis == "law.viscosity":
        return design.exploration.least_speed or None
    return None


def finest_step(design: Design) -> float | None:
    """Return the finest step of the axis that the device renders, or None if unknown."""
    unit, force = force_per_unit(design), design.stimulus.resolution or design.session.spec.force_resolution
    return force / unit if force and unit else None


def _require_reachable(design: Design, value: float) -> None:
    """Raise if a value of the axis exceeds the maximum force."""
    most = design.session.limits.max_force
    if design.axis in _FORCES and value > most:
        raise ConfigurationError(
            f"{design.axis} = {value:g} N: is more than envelope.max_force = {most:g} N of {design.session.device}; "
            f"the highest level on this reference is {max(most - (value - _level(design, value)), 0.0):g} N."
        )


def _level(design: Design, value: float) -> float:
    """Return the smallest level with which `value` is reached from a reference of the conditions."""
    return min((value - one.reference for one in design.conditions if one.reference <= value), default=value)


def _require_fine(design: Design, reference: float, lowest: float) -> None:
    """Raise if the lowest level is smaller than a step of the device."""
    step = finest_step(design)
    if step is not None and lowest < STEPS_OF_A_LEVEL * step:
        pedestal = f"on the pedestal of {reference:g} " if reference else ""
        raise ConfigurationError(
            f"a level of {lowest:g} is finer than {design.session.device} renders in {design.axis}; the smallest "
            f"increment {pedestal}is {STEPS_OF_A_LEVEL * step:.3g}."
        )


def _require_above_own_friction(design: Design, reference: float, lowest: float) -> None:
    """Raise if the friction to be detected is smaller than the friction of the device."""
    least = design.session.spec.least_friction
    if not design.experiment.task.startswith("detection") or design.axis not in _FORCES or not least:
        return
    if reference + lowest < least and reference < least:
        raise ConfigurationError(
            f"experiment.task = {design.experiment.task!r} with a lowest level of {lowest:g} N: "
            f"{design.session.device} has {least:.3g} N of friction left of its own, less cannot be told from none. "
            f"Detect an increment on that pedestal instead: conditions.reference = {_rounded_up(least):g}."
        )


def _rounded_up(value: float) -> float:
    """Return `value` rounded up to a short decimal number."""
    for digits in range(6):
        rounded = round(value, digits)
        if rounded >= value and rounded > 0.0 and rounded < 1.5 * value:
            return rounded
        if (more := rounded + 10.0**-digits) < 1.5 * value and more >= value:
            return round(more, digits)
    return value


def require_reference(design: Design, condition: ConditionSettings) -> None:
    """Raise if a discrimination has no reference, or an easy level is missing."""
    if design.experiment.task == "discrimination" and not condition.reference > 0.0:
        raise ConfigurationError(
            f"conditions.reference = {condition.reference:g}: a discrimination needs one greater than 0; for the least "
            "that is felt at all choose experiment.task = 'detection-2ifc'."
        )
    levels = (
        (design.catch.easy and design.easy_level(condition)),
        (design.practice.window and design.practice_level(condition)),
    )
    for table, name, level in (("catch", "easy_level", levels[0]), ("practice", "level", levels[1])):
        share = design.catch.easy if table == "catch" else design.practice.window
        if share and design.task.responses and not level > 0.0:
            raise ConfigurationError(
                f"{table}.{name} is missing: a level that nobody misses, where there is no reference."
            )


USUAL_KEYS: dict[str, tuple[str, ...]] = {
    "1": ("1", "left"),
    "2": ("2", "right"),
    "yes": ("y",),
    "no": ("n",),
    "same": ("s",),
    "different": ("d",),
    "up": ("up",),
    "down": ("down",),
    "compare": ("c",),
    "done": ("return",),
}
"""Default keys of the answers."""


def possible_answers(task: str) -> tuple[str, ...]:
    """Return the possible meanings of a key or button in a trial of a task."""
    return TASKS[task].responses or (("up", "down", "compare", "done") if task == "adjustment" else ())


def keys_of(design: Design) -> dict[str, str]:
    """Return the answer of each key."""
    named = {
        answer: design.response.keys.get(answer, USUAL_KEYS[answer])
        for answer in possible_answers(design.experiment.task)
    }
    return {key: answer for answer, keys in named.items() for key in keys}


def check_responses(source: Source, design: Design) -> None:
    """Raise if keys or buttons belong to answers that the task does not have, or are assigned twice."""
    for table, given in (("keys", design.response.keys), ("buttons", design.response.buttons)):
        taken: dict[Any, str] = {}
        for answer, marks in given.items():
            where = ("response", table, answer)
            if answer not in possible_answers(design.experiment.task):
                allowed = ", ".join(possible_answers(design.experiment.task)) or "none: a number is entered"
                raise source.error(where, f"response.{table}.{answer}: is no answer to this task; allowed: {allowed}.")
            for mark in marks if table == "keys" else (marks,):
                if taken.setdefault(mark, answer) != answer:
                    raise source.error(where, f"response.{table}.{answer}: {mark!r} is {taken[mark]!r} already.")


def levels_of(table: Mapping[str, Any]) -> tuple[float, float]:
    """Return the lowest and highest level that the procedure in a table can present."""
    settings: Any = procedure_settings(table)
    for name in ("levels", "starts"):
        if hasattr(settings, name):
            return min(getattr(settings, name)), max(getattr(settings, name))
    if hasattr(settings, "level"):
        return settings.level, settings.level
    return settings.minimum, settings.maximum
