"""`python -m fairlead`: the command `fairlead`."""

from __future__ import annotations

from fairlead.cli.main import main

if __name__ == "__main__":
    main()
