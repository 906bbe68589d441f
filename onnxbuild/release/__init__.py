"""Make a release: gates and budgets, the commit it is of, signatures, the releases in `dist/`."""
