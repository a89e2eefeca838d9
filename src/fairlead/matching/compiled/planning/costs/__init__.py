"""What an arriving event can cost: counted along the plan of indexes, as a bound, in words."""
