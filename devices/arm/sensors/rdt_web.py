"""Web pages of an ATI box: units of the counts, rate, and filter."""

from __future__ import annotations

import http.client
import math
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree import ElementTree

from devices.common.bus import printable
from haptics.errors import DeviceOpenError

TIMEOUT = 2.0
"""Timeout of a reply [s]."""

FORCE_UNITS: Mapping[str, float] = {"n": 1.0, "kn": 1e3, "lbf": 4.4482216152605, "klbf": 4448.2216152605,
                                    "kgf": 9.80665, "kg": 9.80665, "gf": 9.80665e-3}  # fmt: skip
"""Force units in N, by lower-case name."""

TORQUE_UNITS: Mapping[str, float] = {"n-m": 1.0, "nm": 1.0, "n-mm": 1e-3, "nmm": 1e-3, "kn-m": 1e3, "knm": 1e3,
                                     "lbf-in": 0.1129848290276167, "lbf-ft": 1.3558179483314004,
                                     "kgf-cm": 0.0980665, "kg-cm": 0.0980665}  # fmt: skip
"""Torque units in N m, by lower-case name."""

FILTERS: Mapping[float, int] = {0: 0, 838: 1, 326: 2, 152: 3, 73: 4, 35: 5, 18: 6, 8: 7, 5: 8,
                                1500: 9, 2000: 10, 2500: 11, 3000: 12}  # fmt: skip
"""Number of a filter by its cut-off frequency [Hz], 0 for none."""

_LONGEST_PAGE = 1 << 20


class Calibration(NamedTuple):
    """Configuration of a box: product, units of force [N] and torque [N m] per count, records per second."""

    product: str
    force: float
    torque: float
    rate: float


class WebPages:
    """Web pages of a box.

    Parameters
    ----------
    address : str
        Host name or address.
    port : int
        Port of its web server.
    """

    def __init__(self, address: str, port: int) -> None:
        self._address, self._port = address, port

    def set_up(self, rate: int, filter_frequency: float) -> Calibration:
        """Set the rate of records [Hz] and the filter [Hz] of the box; return the resulting configuration.

        Only settings that differ are written, because the box stores them in memory with limited write cycles.

        Raises
        ------
        DeviceOpenError
            If the box does not reply, does not accept a setting, or reports invalid values.
        """
        number = FILTERS[filter_frequency]
        tags = self.read()
        for page, tag, value in (("comm", "comrdtrate", rate), ("setting", "setuserfilter", number)):
            if _number(tags, tag) != value:
                self._get(f"/{page}.cgi?{tag}={value}")
                tags = self.read()
        if _number(tags, "setuserfilter") != number:
            raise DeviceOpenError(
                f"the force sensor at {self._address} did not take the filter at {filter_frequency:g} Hz: choose "
                "another device.sensor.filter, one that its web page for settings offers."
            )
        calibration = _calibration(tags)
        # the rate may be rounded to a fraction of the internal rate
        if not 0.5 * rate <= calibration.rate <= 2.0 * rate:
            raise DeviceOpenError(
                f"the force sensor at {self._address} sends {calibration.rate:g} records a second, but was set to "
                f"{rate}: set the rate of raw data transfer on its web page for communication, or choose another "
                "device.sensor.rate."
            )
        return calibration

    def read(self) -> dict[str, str]:
        """Return the present settings of the box: names to values.

        Raises
        ------
        DeviceOpenError
            If they cannot be parsed.
        """
        page = self._get("/netftapi2.xml")
        try:
            root = ElementTree.fromstring(page)
        except ElementTree.ParseError as error:
            raise DeviceOpenError(
                f"what {self._address} sends for netftapi2.xml cannot be read ({error}): is it an ATI Net F/T or Axia?"
            ) from error
        return {element.tag: printable(element.text or "") for element in root.iter()}

    def _get(self, path: str) -> bytes:
        connection = http.client.HTTPConnection(self._address, self._port, timeout=TIMEOUT)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            page = answer.read(_LONGEST_PAGE)
        except (OSError, http.client.HTTPException) as error:
            raise DeviceOpenError(
                f"the web pages of the force sensor at {self._address} cannot be reached ({error}): check its power "
                "and network cable, that this computer is in the same network, and device.sensor.address."
            ) from error
        finally:
            connection.close()
        if answer.status not in {http.client.OK, http.client.FOUND}:  # settings are answered with a redirection
            raise DeviceOpenError(
                f"the force sensor at {self._address} answered {answer.status} {answer.reason} to {path}: is it an ATI "
                "Net F/T or Axia?"
            )
        return page


def _calibration(tags: Mapping[str, str]) -> Calibration:
    force = _unit(tags, "scfgfu", FORCE_UNITS) / _number(tags, "cfgcpf")
    torque = _unit(tags, "scfgtu", TORQUE_UNITS) / _number(tags, "cfgcpt")
    if not (0.0 < force < math.inf and 0.0 < torque < math.inf):
        raise DeviceOpenError(
            f"the force sensor says that there are cfgcpf = {tags['cfgcpf']} and cfgcpt = {tags['cfgcpt']} counts to a "
            "unit of force and of torque: choose another configuration on its web pages."
        )
    return Calibration(tags.get("prodname", ""), force, torque, _number(tags, "comrdtrate"))


def _number(tags: Mapping[str, str], tag: str) -> float:
    try:
        value = float(tags[tag])
    except (KeyError, ValueError):
        value = math.nan
    if not math.isfinite(value) or (value == 0.0 and tag.startswith("cfgcp")):
        raise DeviceOpenError(
            f"the force sensor says {tag} = {tags.get(tag, 'nothing')!r}, which must be a number: its firmware may be "
            "too old or too new, or its configuration is not complete (see its web pages)."
        )
    return value


def _unit(tags: Mapping[str, str], tag: str, units: Mapping[str, float]) -> float:
    name = tags.get(tag, "")
    if name.lower() not in units:
        raise DeviceOpenError(
            f"the force sensor says {tag} = {name!r}, an unknown unit: choose one of {', '.join(units)} on its web "
            "page for configurations."
        )
    return units[name.lower()]
