"""What a motor gives for what it is told: gain, offset, hysteresis, back-EMF (Guedelha et al. 2018, 3.3)."""
