"""A plan on finite input: targets, the shuffle of blobs, matching in tasks, rows out."""
