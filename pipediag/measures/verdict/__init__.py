"""The verdict: the bottleneck, how sure it is, and the words for it."""
