"""Random programs of users, each held to the law: an incremental build equals a clean one."""
