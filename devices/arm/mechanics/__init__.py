"""Mechanics of an arm: linkages, rigid dynamics, elastic joints with friction, contact surface."""
