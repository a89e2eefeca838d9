"""Fairlead: equal subscribers get equal composite events, in equal order."""
