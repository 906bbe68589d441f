"""A release is checked: what it says against what it holds, run again, built again."""
