"""Live changes to running DataLoaders."""
