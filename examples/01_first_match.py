"""A first subscription: an earnings report, then three quotes of the same symbol that rise.

Prints:

    Rally: events 1, 2, 4, 6
      EarningsReport {'symbol': 'BAQZ'}
      StockQuote {'symbol': 'BAQZ', 'value': 20.0}
      StockQuote {'symbol': 'BAQZ', 'value': 20.5}
      StockQuote {'symbol': 'BAQZ', 'value': 21.25}
      emits {'symbol': 'BAQZ', 'gain': 1.25}
"""

import fairlead

RULES = """
TYPE EarningsReport (symbol STRING, at TIMESTAMP) TIME at
TYPE StockQuote (symbol STRING, value DOUBLE, at TIMESTAMP) TIME at

SUBSCRIPTION Rally
MATCH EarningsReport r AND StockQuote q[3]
WHERE q[1].at > r.at AND q[2].value > q[1].value AND q[3].value > q[2].value
PER symbol
WITHIN 5 MINUTES
MATCHING FIRST
DISPOSAL PREFIX INFIX
EMIT RallySeen(symbol = r.symbol, gain = q[3].value - q[1].value)
"""

EVENTS = [
    {"type": "StockQuote", "symbol": "BAQZ", "value": 19.0, "at": "2026-03-02T10:00:00Z"},  # before the report
    {"type": "EarningsReport", "symbol": "BAQZ", "at": "2026-03-02T10:00:05Z"},
    {"type": "StockQuote", "symbol": "BAQZ", "value": 20.0, "at": "2026-03-02T10:00:10Z"},
    {"type": "StockQuote", "symbol": "BEXK", "value": 99.0, "at": "2026-03-02T10:00:11Z"},  # another symbol
    {"type": "StockQuote", "symbol": "BAQZ", "value": 20.5, "at": "2026-03-02T10:00:20Z"},
    {"type": "StockQuote", "symbol": "BAQZ", "value": 20.25, "at": "2026-03-02T10:00:30Z"},  # does not rise
    {"type": "StockQuote", "symbol": "BAQZ", "value": 21.25, "at": "2026-03-02T10:00:40Z"},
]

plan = fairlead.compile(RULES)
for relation in fairlead.match(plan, EVENTS):
    print(f"{relation.subscription}: events {', '.join(map(str, relation.positions))}")
    for event in relation.events:
        print(" ", event.type, {name: value for name, value in event.values.items() if name != "at"})
    print("  emits", relation.emitted)
