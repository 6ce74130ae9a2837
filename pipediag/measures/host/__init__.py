"""What the host sampler saw: CPU time, memory and threads while the loop ran."""
