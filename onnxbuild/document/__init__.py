"""A recipe as it is written: values with their places, the parts that could be read, faults."""
