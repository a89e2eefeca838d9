"""Conjunctions compiled to machine code: a loop over columns, made for one plan (LLVM)."""
