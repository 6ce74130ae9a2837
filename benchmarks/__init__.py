"""What pipediag costs and how right it is, measured by running it."""
