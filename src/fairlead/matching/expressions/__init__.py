"""What expressions come to: closures for one relation, columns for many."""
