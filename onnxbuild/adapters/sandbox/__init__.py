"""The sandbox of a step: the files that it may read and write, and the explanation of a refusal."""
