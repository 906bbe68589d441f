"""The outside world: disk, kernel, store, installed software, processes, console."""
