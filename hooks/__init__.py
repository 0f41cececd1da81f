"""The only code of gpuutil that touches the host framework. Nothing is patched on import."""
