"""Statistics of values over data, and the ranges that follow from them."""
