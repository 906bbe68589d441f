"""Model artifacts of the Open Container Initiative: their media types, manifests and layouts, as they are written."""
