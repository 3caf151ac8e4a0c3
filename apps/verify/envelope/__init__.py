"""The safety envelope, rule by rule, as `docs/safety.md` states it, put to recorded ticks.

`history` follows what the envelope remembers (fades, easing, gaps), `samples` has rules 1 to 3, `impedance` and
`admittance` the rules for the command, `energy` the ledger of rule 10, `gate` the column of that name.
"""
