"""ATI Net F/T and Axia: raw data transfer, configured through web pages."""

from __future__ import annotations

import http.client
import math
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from devices.arm.sensors.mounting import check_one_of
from devices.arm.sensors.rdt import RdtSettings, RdtWire
from devices.common.bus import printable
from haptics.errors import DeviceOpenError
from haptics.settings import bounded, documented

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


_COMMON = {16: "a monitored condition was met"}

NET_FT: Mapping[int, str] = {
    30: "processor or memory failure",
    29: "failure of the digital board",
    28: "failure of the analogue board",
    27: "failure of the link between its boards",
    26: "program memory is corrupt",
    25: "stopped by an error in its settings",
    24: "settings are not valid",
    23: "the settings do not fit the calibration",
    22: "network failure",
    21: "CAN failure",
    20: "failure of the data stream",
    19: "EtherNet/IP failure",
    18: "DeviceNet failure",
    17: "saturated: take the load away; if that does not help, its transducer or cable is broken",
    14: "watchdog has expired",
    13: "stack overflow",
    12: "settings memory does not answer",
    11: "flash memory does not answer",
    10: "watchdog of the analogue board has expired",
    9: "too much current through the strain gauges",
    8: "too little current through the strain gauges",
    7: "analogue ground is out of range",
    6: "supply of the analogue board is too high",
    5: "supply of the analogue board is too low",
    4: "the analogue board sends no data",
    3: "reference voltage or supply is out of range",
    2: "temperature is out of range",
    1: "web server failure",
    **_COMMON,
}
"""Meaning of the bits of Net F/T boxes; bit 31 only indicates that other bits are set."""

AXIA: Mapping[int, str] = {
    30: "overloaded: force or torque is out of range, take the load away",
    29: "the calibration is corrupt",
    28: "simulates an error",
    27: "overloaded: a strain gauge is out of range, take the load away",
    26: "a strain gauge is nearly out of range",
    5: "failure of hardware or firmware",
    3: "busy",
    2: "a strain gauge is broken",
    1: "supply voltage is out of range",
    0: "temperature is out of range",
    **_COMMON,
}
"""Meaning of the bits of Axia sensors; bit 31 as above."""


@documented
@dataclass(frozen=True, kw_only=True)
class AtiSettings(RdtSettings):
    """Settings of an ATI Net F/T or Axia."""

    web_port: int = bounded(80, minimum=1, maximum=65535, doc="port of the sensor's web pages")
    rate: int = bounded(1000, minimum=100, maximum=7000, unit="Hz", doc="records per second")
    filter: float = bounded(
        0.0, minimum=0.0, unit="Hz", doc="cut-off frequency of the sensor's low-pass filter, 0 for none"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of(self, "filter", list(FILTERS), "Hz")


class AtiWire(RdtWire):
    """ATI Net F/T or Axia.

    Parameters
    ----------
    settings : AtiSettings
        Address and configuration of the sensor.
    """

    def __init__(self, settings: AtiSettings) -> None:
        super().__init__(settings, f"the ATI force sensor at {settings.address}")
        self._settings = settings

    def set_up(self) -> None:
        """Set rate and filter of the sensor, and read the units of its counts.

        Only settings that differ are written, because the box stores them in memory with limited write cycles.

        Raises
        ------
        DeviceOpenError
            If the box does not reply, does not accept a setting, or reports invalid values.
        """
        own, number = self._settings, FILTERS[self._settings.filter]
        tags = self._read_tags()
        for page, tag, value in (("comm", "comrdtrate", own.rate), ("setting", "setuserfilter", number)):
            if _number(tags, tag) != value:
                self._get(f"/{page}.cgi?{tag}={value}")
                tags = self._read_tags()
        if _number(tags, "setuserfilter") != number:
            raise DeviceOpenError(
                f"the force sensor at {own.address} did not take the filter at {own.filter:g} Hz: choose another "
                "device.sensor.filter, one that its web page for settings offers."
            )
        force = _unit(tags, "scfgfu", FORCE_UNITS) / _number(tags, "cfgcpf")
        torque = _unit(tags, "scfgtu", TORQUE_UNITS) / _number(tags, "cfgcpt")
        if not (0.0 < force < math.inf and 0.0 < torque < math.inf):
            raise DeviceOpenError(
                f"the force sensor says that there are cfgcpf = {tags['cfgcpf']} and cfgcpt = {tags['cfgcpt']} counts "
                "to a unit of force and of torque: choose another configuration on its web pages."
            )
        rate = _number(tags, "comrdtrate")  # it may be rounded to a fraction of the internal rate
        if not 0.5 * own.rate <= rate <= 2.0 * own.rate:
            raise DeviceOpenError(
                f"the force sensor at {own.address} sends {rate:g} records a second, but was set to {own.rate}: set "
                "the rate of raw data transfer on its web page for communication, or choose another "
                "device.sensor.rate."
            )
        self.scale = force, torque
        self.meanings = AXIA if "axia" in tags.get("prodname", "").lower() else NET_FT

    def _read_tags(self) -> dict[str, str]:
        """Return the present settings of the box: names to values."""
        page = self._get("/netftapi2.xml")
        try:
            root = ElementTree.fromstring(page)
        except ElementTree.ParseError as error:
            raise DeviceOpenError(
                f"what {self._settings.address} sends for netftapi2.xml cannot be read ({error}): is it an ATI Net F/T "
                "or Axia?"
            ) from error
        return {element.tag: printable(element.text or "") for element in root.iter()}

    def _get(self, path: str) -> bytes:
        """Return a web page of the box."""
        address = self._settings.address
        connection = http.client.HTTPConnection(address, self._settings.web_port, timeout=TIMEOUT)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            page = answer.read(_LONGEST_PAGE)
        except (OSError, http.client.HTTPException) as error:
            raise DeviceOpenError(
                f"the web pages of the force sensor at {address} cannot be reached ({error}): check its power and "
                "network cable, that this computer is in the same network, and device.sensor.address."
            ) from error
        finally:
            connection.close()
        if answer.status not in {http.client.OK, http.client.FOUND}:  # settings are answered with a redirection
            raise DeviceOpenError(
                f"the force sensor at {address} answered {answer.status} {answer.reason} to {path}: is it an ATI Net "
                "F/T or Axia?"
            )
        return page


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
