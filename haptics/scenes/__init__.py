"""Scenes: planes of several materials, in which the numbers of the friction law depend on the place.

A *scene* has one family of laws. Its background and its regions differ only in the numbers of that law, and the numbers
are blended at the borders. Mass, stiffness and damping of the element are constant: only the surface on which its proxy
slides changes from place to place.

============  =========================================================================================
module        content
============  =========================================================================================
`shapes`      circle, polygon, half-plane: signed distances and outlines; image maps and textures
`scene`       regions, the scene, its numbers at points; which laws can be mixed; condition (15) for all
              mixtures; the memory block of a scene for the kernels
`walls`       solid parts, with friction proportional to the normal force
`kernels`     lookup of the numbers at a point, and geometry of walls
`tables`      scenes as tables in files and recordings, and the scenes shipped with the program
============  =========================================================================================
"""

from haptics.lazy import public_names

__all__, __getattr__, __dir__ = public_names(__name__, __file__)
