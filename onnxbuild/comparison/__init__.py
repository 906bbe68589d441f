"""Two builds, variants, releases, commits or model files: all that differs, in sentences, as JSON, as a page."""
