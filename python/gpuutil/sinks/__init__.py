"""Where reports go. One file a sink; a sink gets finished text and dicts, never the engine."""
