"""Observe a step: the files that it reads, lists and looks for, and the modules that it imports."""
