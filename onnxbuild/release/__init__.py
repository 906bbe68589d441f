"""What makes a build something that others can check: locks, reproduction, releases, verification."""
