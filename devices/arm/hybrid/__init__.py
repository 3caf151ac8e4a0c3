"""Hybrid control of position and force on a surface, of integer or fractional order (Machado 2002)."""
