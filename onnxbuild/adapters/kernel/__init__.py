"""Calls to the kernel: Landlock, seccomp, memory of other processes."""
