"""The command line: options in, calls down, exit statuses out."""
