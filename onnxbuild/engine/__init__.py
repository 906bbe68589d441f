"""The loop: decide, schedule, build, record."""
