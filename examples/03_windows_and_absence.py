"""Time: a window that slides with the events, and an absence that is reported at a definite place in the order.

Prints:

    Burst at 2: events (0, 1, 2)
    Silent at 8-1: events (5,) {'order': 12}
    without until: 2 relations
    until 10:30: 3 relations, the last is order 13
"""

import fairlead

RULES = """
TYPE Login (user STRING, at TIMESTAMP) TIME at
TYPE Sale (order INT, at TIMESTAMP) TIME at
TYPE Shipment (order INT, at TIMESTAMP) TIME at

SUBSCRIPTION Burst            -- three logins of one user within a minute, by the user's own clock
MATCH Login l[3] PER user WITHIN 1 MINUTE

SUBSCRIPTION Silent           -- a sale that nobody ships within ten minutes
MATCH Sale s WITHOUT Shipment t WITHIN 10 MINUTES OF s PER order
EMIT NotShipped(order = s.order)
"""

EVENTS = [
    {"type": "Login", "user": "u1", "at": "2026-03-02T10:00:00Z"},
    {"type": "Login", "user": "u1", "at": "2026-03-02T10:00:30Z"},
    {"type": "Login", "user": "u1", "at": "2026-03-02T10:01:00Z"},  # exactly a minute still counts
    {"type": "Login", "user": "u1", "at": "2026-03-02T10:01:10Z"},  # the first three are used up
    {"type": "Sale", "order": 11, "at": "2026-03-02T10:02:00Z"},
    {"type": "Sale", "order": 12, "at": "2026-03-02T10:02:00Z"},
    {"type": "Shipment", "order": 11, "at": "2026-03-02T10:09:00Z"},
    {"type": "Sale", "order": 13, "at": "2026-03-02T10:11:00Z"},
    {"type": "Heartbeat", "at": "2026-03-02T10:12:01Z"},  # nothing happened, but time passed: order 12 is overdue
]

plan = fairlead.compile(RULES)
result = fairlead.match(plan, EVENTS)
for relation in result:
    print(f"{relation.subscription} at {relation.completed_at}: events {relation.positions} {relation.emitted or ''}".rstrip())
print(f"without until: {len(result)} relations")

# The sale of order 13 stays open: a longer input could still bring its shipment. `until` says that nothing more comes.
later = fairlead.match(plan, EVENTS, until="2026-03-02T10:30:00Z")
print(f"until 10:30: {len(later)} relations, the last is order {later[-1].emitted['order']}")
