"""Fairlead live, beside the sequencer's way and beside one message per event: `python -m benchmarks.live`."""
