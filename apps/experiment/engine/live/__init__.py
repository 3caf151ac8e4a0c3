"""Live sessions: the servo in its own process, a person in front of the screens, everything by the wall's clock."""
