"""What the kernel is asked for: Landlock, seccomp, memory of other processes."""
