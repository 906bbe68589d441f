"""`python -m onnxbuild`."""

from onnxbuild.cli.main import main

main()
