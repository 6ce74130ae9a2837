"""Start the training of the package."""

from rank.main import main

main()
