"""One file a step kind: options, parameters, `run`, `KIND`; steps never import each other."""
