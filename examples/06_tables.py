"""Tables in, tables out: pyarrow, pandas and polars give the same relations, and the result is an Arrow table.

Prints:

    pyarrow  1 relation, as from pyarrow: True
    pandas   1 relation, as from pyarrow: True
    polars   1 relation, as from pyarrow: True
    [{'subscription': 'Jump', 'sensor': 't1', 'by': 6.0}]
    shape (1, 10) in pandas, (1, 10) in polars
"""

import polars
import pyarrow

import fairlead

RULES = """
TYPE Reading (sensor STRING, value DOUBLE, at TIMESTAMP) TIME at
TYPE Service (sensor STRING, at TIMESTAMP) TIME at

SUBSCRIPTION Jump              -- two neighbouring readings of one sensor, 5 apart, with no service between them
MATCH Reading a THEN Reading b
WHERE abs(b.value - a.value) >= 5
WITHOUT Service s BETWEEN a AND b
PER sensor
WITHIN 1 HOUR
MATCHING FIRST CONTIGUOUS
EMIT Jumped(sensor = a.sensor, by = b.value - a.value)
"""

# One wide table: a `type` column, and a column for each attribute of any type, null where it does not apply.
rows = [
    ("Reading", "t1", 20.0),
    ("Reading", "t2", 7.0),
    ("Reading", "t1", 26.0),
    ("Service", "t2", None),
    ("Reading", "t2", 13.0),
]
arrow = pyarrow.table(
    {
        "type": [row[0] for row in rows],
        "sensor": [row[1] for row in rows],
        "value": [row[2] for row in rows],
        "at": pyarrow.array([1_772_445_600 + 60 * n for n in range(len(rows))]).cast(pyarrow.timestamp("s")),
    }
)

plan = fairlead.compile(RULES)
tables = {"pyarrow": arrow, "pandas": arrow.to_pandas(), "polars": polars.from_arrow(arrow)}
results = {name: fairlead.match(plan, table) for name, table in tables.items()}
for name, result in results.items():
    same = fairlead.compare(result.receipt, results["pyarrow"].receipt)
    print(f"{name:<8} {len(result)} relation, as from pyarrow: {same.equal}")

jumps = results["pyarrow"].to_arrow("Jump")
print(jumps.select(["subscription", "sensor", "by"]).to_pylist())
print(f"shape {jumps.to_pandas().shape} in pandas, {polars.from_arrow(jumps).shape} in polars")
