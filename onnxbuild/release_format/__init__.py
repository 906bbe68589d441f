"""What a release is: its files, the form of each, written and read."""
