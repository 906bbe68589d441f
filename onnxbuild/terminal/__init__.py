"""What the verbs print with: tables, the display of a build, the words of a diagnosis."""
