"""The demonstrations, a module for each; `apps.gallery.registry` has them by name."""
