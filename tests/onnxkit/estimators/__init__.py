"""Tests of onnxbuild/onnxkit/estimators."""
