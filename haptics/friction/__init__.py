"""Friction laws: the force of a sliding contact, and its exact implicit counterpart; custom laws.

`haptics.friction.laws` has the isotropic laws (Coulomb, viscous, Stribeck), `anisotropy` those that depend on the
direction, `closed_form` the approximation of Kikuuwe et al. 2006, `custom_law` a person's own function.
"""
