"""Receipts: two subscribers compare 16 bytes to know that they delivered the same, in the same order.

Prints:

    the same events:    equal: 5 deliveries, the same in the same order
    sent and received:  equal: 5 deliveries, the same in the same order
    two events swapped: False, 2 deliveries agree, then Settled (5, 4) against Settled (4, 5)
    another rule:       the receipts are of different subscriptions, so they need not agree
"""

import json

import fairlead

RULES = """
TYPE Debit (payment INT, amount DECIMAL(10,2))
TYPE Credit (payment INT, amount DECIMAL(10,2))

SUBSCRIPTION Settled
MATCH Debit d AND Credit c
WHERE d.amount = c.amount
PER payment
"""

plan = fairlead.compile(RULES)
events = [{"type": name, "payment": n, "amount": f"{n}.50"} for n in range(1, 6) for name in ("Debit", "Credit")]

result = fairlead.match(plan, events)
here = result.receipt
there = fairlead.match(plan, iter(events)).receipt
print("the same events:   ", fairlead.compare(here, there))

# A receipt travels as a few lines of JSON. It holds digests on the way, so two of them also tell where they part.
received = fairlead.Receipt.from_json(json.loads(json.dumps(here.to_json())))
print("sent and received: ", fairlead.compare(here, received))

swapped = [*events[:4], events[5], events[4], *events[6:]]  # the credit of payment 3 now comes before its debit
other = fairlead.match(plan, swapped)
difference = fairlead.compare(here, other.receipt)
first, second = (next(r for r in each if r.id == id_) for each, id_ in zip((result, other), difference.first, strict=True))
print(f"two events swapped: {difference.equal}, {difference.agreed} deliveries agree, ", end="")
print(f"then {first.subscription} {first.positions} against {second.subscription} {second.positions}")

changed = fairlead.compile(RULES.replace("d.amount = c.amount", "d.amount >= c.amount"))
print("another rule:      ", fairlead.compare(here, fairlead.match(changed, events).receipt))
