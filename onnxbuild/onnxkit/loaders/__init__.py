"""Stand-alone load.py scripts that bundles ship; they import nothing of this package."""
