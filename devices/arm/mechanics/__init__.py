"""The mechanics of an arm: linkages, rigid dynamics, elastic joints with friction, the surface it presses on."""
