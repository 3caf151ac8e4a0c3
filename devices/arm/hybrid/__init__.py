"""Hybrid control of position and force on a surface, of whole or fractional order (Machado 2002)."""
