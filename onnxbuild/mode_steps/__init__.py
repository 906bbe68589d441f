"""The steps, options and faults that several quantization modes share."""
