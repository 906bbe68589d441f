"""Tests of the comparison of two sides."""
