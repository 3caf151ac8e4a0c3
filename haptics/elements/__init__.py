"""Friction elements: what turns motion into force, or force into motion, once per period.

`haptics.elements.models` has the four models A to D of Kikuuwe et al. 2006, `classic` the models from the literature
to compare with, `network` masses, springs and contacts, `simulation` whole runs without a device, `tables` the way
from settings to an element.
"""
