"""What several drivers share: velocity, friction compensation, linkages, latches between threads and kernels."""
