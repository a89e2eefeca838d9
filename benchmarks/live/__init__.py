"""Fairlead live, beside the sequencer's way and beside a message an event: `python -m benchmarks.live`."""
