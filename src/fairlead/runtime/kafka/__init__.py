"""Kafka connectors: from a topic into the log, and relations out to a topic.

inward.py    messages to events, each once
outward.py   relations to messages, each once
brokers.py   settings and errors of the Kafka client
"""
