"""Friction elements: models that convert motion to force, or force to motion, once per period.

`haptics.elements.models` contains the four models A to D of Kikuuwe et al. 2006 and their simulation without a device,
`classic` the models from the literature for comparison, `network` systems of masses, springs and contacts, and `tables`
the construction of elements from settings.
"""
