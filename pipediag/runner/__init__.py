"""Parent and child: the one starts, watches and reports; the other runs the script."""
