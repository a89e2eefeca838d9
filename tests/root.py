"""Where the repository is: tests read its pages, examples and conformance cases."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
