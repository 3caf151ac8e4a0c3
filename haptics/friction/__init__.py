"""Friction laws: the force of a sliding contact, and its exact implicit counterpart.

`haptics.friction.laws` contains the isotropic laws (Coulomb, viscous, Stribeck), `anisotropy` the laws that depend on
the direction, `closed_form` the approximation of Kikuuwe et al. 2006, and `custom_law` user-defined functions.
"""
