"""The Windows back end, on a Windows Python: run by `make test-windows`."""
