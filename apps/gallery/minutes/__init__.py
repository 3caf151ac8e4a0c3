"""Demonstrations of the gallery, one module each.

`apps.gallery.registry` lists them by name.
"""
