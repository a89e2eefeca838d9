"""A log in a NATS server or cluster (JetStream)."""
