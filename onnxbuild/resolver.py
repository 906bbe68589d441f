"""Recipe -> Graph: pure; reads no file, imports no framework."""
