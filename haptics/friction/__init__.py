"""Friction laws: the force of a sliding contact, and its exact implicit counterpart.

`haptics.friction.laws` contains the built-in laws: isotropic ones (Coulomb, viscous, Stribeck), laws that depend on the
direction, and the approximation of Kikuuwe et al. 2006 in closed form. `custom_law` contains user-defined functions,
`kernels` the compiled code of all laws.
"""
