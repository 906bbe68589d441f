"""Stand-alone load.py scripts that bundles ship, put together from parts; a script imports no onnxbuild."""
