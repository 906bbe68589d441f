"""Build again whenever a file is saved that the build has read: `watch`."""
