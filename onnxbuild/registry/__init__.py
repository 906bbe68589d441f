"""OCI registries: `push` and `pull` of bundles and releases, and OCI layouts on disk."""
