"""One file a step kind: its parameters, its run, its KIND. Steps never import each other."""
