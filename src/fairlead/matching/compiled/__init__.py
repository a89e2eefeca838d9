"""The matcher that goes through whole batches in machine code made for the plan (LLVM)."""
