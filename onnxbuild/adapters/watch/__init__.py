"""Files that change, a build in a process of its own, keys that are pressed: for `onnxbuild watch`."""
