"""Checks of the safety envelope at recorded ticks, rule by rule as in `docs/safety.md`.

`history` reconstructs the state of the envelope (fades, easing, gaps). `samples` checks rules 1 to 3, `impedance` and
`admittance` the rules for the command, `energy` the energy ledger of rule 10, and `gate` the column ``gate``.
"""
