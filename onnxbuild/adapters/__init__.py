"""The outside world, one port each: disk, child processes, installed tools, clock, console."""
