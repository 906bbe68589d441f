"""The lock: all that a recipe's build used and gave, in a file to review and to commit."""
