"""What the order guarantees: one word in a rule changes it, and a counterexample shows how.

Prints:

    no duplication           kept   kept
    no duplication'          kept   kept
    no creation              kept   kept
    admission                kept   kept
    conjunction validity     kept   kept
    event validity           kept   kept
    conjunction agreement    kept   kept
    covering agreement       lost   lost
    type total order         kept   lost
    conjunction total order  kept   lost
    disjunction total order  kept   kept
    type FIFO order          kept   lost
    type local order         kept   lost
    type causal order        kept   lost

    type total order is lost by DISPOSAL INFIX:
    an event that a relation passed over stays queued and is delivered after a newer one of its type

    A stored case of MATCHING FIRST, DISPOSAL INFIX for several types, one instance each, conditions between types.
    Its types, conditions and values are its own, not those of Loose.

    TYPE A (x INT)
    TYPE B (x INT)

    SUBSCRIPTION p1
    MATCH A a AND B b
    WHERE b.x != a.x
    MATCHING FIRST
    DISPOSAL INFIX

    SUBSCRIPTION p2
    MATCH A a
    MATCHING FIRST
    DISPOSAL INFIX

      p2 multicasts A(0)
      p2 delivers [A(0)]
      p2 multicasts B(0)
      p2 multicasts A(1)
      p1 delivers [A(1), B(0)]
      p2 delivers [A(1)]
      p2 multicasts B(1)
      p1 delivers [A(0), B(1)]

    type total order is violated: p1 delivers A(1) before A(0), p2 delivers A(0) before A(1)
"""

import fairlead

RULES = """
TYPE Bid (item STRING)
TYPE Offer (item STRING)

SUBSCRIPTION Strict MATCH Bid b AND Offer o WHERE b.item = o.item
MATCHING FIRST DISPOSAL PREFIX INFIX

SUBSCRIPTION Loose MATCH Bid b AND Offer o WHERE b.item = o.item
MATCHING FIRST DISPOSAL INFIX
"""

plan = fairlead.compile(RULES)
for strict, loose in zip(plan.guarantees["Strict"], plan.guarantees["Loose"], strict=True):
    print(f"{strict.property:<24} {strict.verdict:<6} {loose.verdict}")

lost = next(each for each in plan.guarantees["Loose"] if each.property == "type total order")
print(f"\n{lost.property} is lost by {lost.clause}:\n{lost.reason}\n")
explanation = fairlead.explain(plan, "Loose", counterexamples=lost.property)
(trace,) = explanation.counterexamples.values()
print(trace)
