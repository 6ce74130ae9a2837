"""The threads of the host: the training loop, the graph it runs, and what their time went to."""
