"""Parameter advice during a session: recorded, and reported once when a bound is exceeded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from haptics.design import Advice, Severity, advise, advise_walls

if TYPE_CHECKING:
    from haptics.device import DeviceSpec
    from haptics.elements.models import Element
    from haptics.scenes import Scene


class ParameterAdvice:
    """Checks the elements of a session against the stability bounds of the device.

    Parameters
    ----------
    spec : DeviceSpec
        The device of the session.

    Attributes
    ----------
    record : list of dict
        All advice for the first element, and new warnings for later elements.
    warnings : list of str
        Texts of all warnings, oldest first.
    """

    def __init__(self, spec: DeviceSpec) -> None:
        self._spec = spec
        self._outside: set[str] = set()
        self.record: list[dict[str, Any]] = []
        self.warnings: list[str] = []

    def consider(self, element: Element, version: int, scene: Scene | None = None) -> str:
        """Check `element`, in force as `version` of the settings, and the walls of its scene.

        Returns
        -------
        str
            One line with the bounds that are newly exceeded, or an empty string.
        """
        found = advise(element, self._spec)
        if scene is not None:
            found += advise_walls(scene.walls, element, self._spec)
        warnings = [advice for advice in found if advice.severity is Severity.WARNING]
        new = [advice for advice in warnings if advice.bound not in self._outside]
        self._outside = {advice.bound for advice in warnings}
        self._keep(new if version else found, version)
        self.warnings += [advice.text for advice in new]
        return " ".join(advice.text for advice in new)

    def _keep(self, advice: list[Advice], version: int) -> None:
        self.record += [{"settings_version": version, **one.as_dict()} for one in advice]
