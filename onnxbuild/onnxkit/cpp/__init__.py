"""C++ packages: a CMake project around a bundle, written, compiled and run."""
