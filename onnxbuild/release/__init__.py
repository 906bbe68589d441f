"""A release is made: gates, what it comes from, signatures, its place on the shelf."""
