"""Plan and ordered events in, relations and state out."""
