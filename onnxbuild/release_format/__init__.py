"""The files of a release, each written and read: for those who make one and those who check one."""
