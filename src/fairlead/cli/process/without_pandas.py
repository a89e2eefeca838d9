"""Hides pandas from the process. The first `pa.array` imports it if it is installed, to recognise its objects. No command ever
meets such an object, except those on Spark, which show it again (`show`).

Measured (CPU seconds, median of 8 alternating starts): `fairlead run` of five events 0.45 instead of 0.68.
"""

from __future__ import annotations

import sys


class NoPandas:
    """An importer that finds no pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("the command line does without pandas", name=name)


def hide() -> None:
    sys.meta_path.insert(0, NoPandas)


def show() -> None:
    if NoPandas in sys.meta_path:
        sys.meta_path.remove(NoPandas)
