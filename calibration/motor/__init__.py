"""Motor identification: gain, offset, hysteresis, back-EMF (Guedelha et al. 2018, 3.3)."""
