"""The language front end: a rule text becomes a Plan, or a LanguageError with its place."""

from fairlead.language.compiler import compile_text
from fairlead.language.dialects import DIALECTS

__all__ = ["DIALECTS", "compile_text"]
