"""Output of the verbs: tables, the display of a build, the words of a diagnosis."""
