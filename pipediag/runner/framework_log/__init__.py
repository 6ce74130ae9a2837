"""The log of TensorFlow's own C++ on the script's standard error: told apart, and folded."""
