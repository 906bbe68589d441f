"""What a build used and gave, as a file to review and to commit; two of them compared."""
