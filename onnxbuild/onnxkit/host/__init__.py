"""The machine: processor, cores, devices, libraries, load."""
