"""How far outputs are apart: metrics, tolerances, verdicts."""
