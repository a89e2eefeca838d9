"""The files of commands: rules, the state of a run, outputs, and the deliveries that are compared."""
