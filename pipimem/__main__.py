"""`python -m pipimem` is the command line."""

import sys

from pipimem.cli import main

if __name__ == "__main__":
    sys.exit(main())
