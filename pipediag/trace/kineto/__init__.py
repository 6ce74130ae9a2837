"""Kineto traces: the Chrome-trace JSON that PyTorch's profiler writes."""
