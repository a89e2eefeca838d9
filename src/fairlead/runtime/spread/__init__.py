"""One run in several processes: keys are spread over workers, and their relations are put in one order again."""
