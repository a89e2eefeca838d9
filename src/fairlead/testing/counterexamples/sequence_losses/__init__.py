"""The search for what sequences lose: patterns with NEXT, runs, groups, ELSE and STEPWISE, each loss with a trace."""
