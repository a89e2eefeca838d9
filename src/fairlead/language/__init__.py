"""The language front end: a rule text becomes a Plan, or a LanguageError with its place."""

from fairlead.language.compiler import compile_text

__all__ = ["compile_text"]
