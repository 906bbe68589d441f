"""Shell completion: scripts for bash, zsh and fish, and what they ask for: verbs, options, recipes, variants, steps."""
