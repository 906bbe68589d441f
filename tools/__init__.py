"""Scripts of the project that are no part of the package: `make dist`, `make docs`, the GitHub Action."""
