"""Plans: what a rule text asks for, checked and compiled; its canonical form, and the rules that all runtimes share."""
