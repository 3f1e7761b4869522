"""`python -m pipimem`: the command line."""

from __future__ import annotations

from pipimem.cli import run

if __name__ == "__main__":
    run()
