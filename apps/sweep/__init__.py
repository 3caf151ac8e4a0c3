"""``haptics sweep``: many simulated sessions, one for each point of a design, on all processors or on a cluster."""
