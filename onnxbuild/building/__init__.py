"""One build from a request to its outcome, with real adapters."""
