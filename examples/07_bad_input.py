"""Bad rules and bad events: each error has a code, a place, the problem and the fix; bad records can be skipped.

Prints:

    L012 line 3, column 18: event type 'Login' has no attribute 'usr'
        WHERE a.user = b.usr
                         ^^^
      fix: did you mean 'user'?
    D004 record 1: attribute 'at' of 'Login': expected TIMESTAMP (ISO 8601), got str 'noon'
    Twice (0, 3)
    line 2: D001 event type 'Logon' is not declared
    line 3: D002 event type 'Login' has no attribute 'age'
    line 5: D012 the file ends in the middle of a line: it has no newline and is not valid JSON
"""

import tempfile
from pathlib import Path

import fairlead
from fairlead.transport import read_files

RULES = """TYPE Login (user STRING, at TIMESTAMP) TIME at
SUBSCRIPTION Twice MATCH Login a THEN Login b
WHERE a.user = b.usr"""

try:
    fairlead.compile(RULES)
except fairlead.LanguageError as error:
    print(error)

plan = fairlead.compile(RULES.replace("usr", "user"))
try:
    fairlead.match(plan, [{"type": "Login", "user": "u1", "at": 1.5e9}, {"type": "Login", "user": "u1", "at": "noon"}])
except fairlead.DataError as error:
    print(f"{error.code} {error.place}: {error.problem}")

LINES = """{"type": "Login", "user": "u1", "at": "2026-03-02T10:00:00Z"}
{"type": "Logon", "user": "u1", "at": "2026-03-02T10:00:01Z"}
{"type": "Login", "user": "u1", "at": "2026-03-02T10:00:02Z", "age": 7}
{"type": "Login", "user": "u1", "at": "2026-03-02T10:00:03Z"}
{"type": "Login", "user": "u1", "at": "2026-0"""  # the writer died in the middle of a line

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "logins.jsonl")
    path.write_text(LINES)
    rejected = []
    run = fairlead.Run(plan)
    for columns in read_files(path, plan.catalogue, on_bad="skip", rejects=rejected.append):
        for relation in run.feed(columns):
            print(relation.subscription, relation.positions)
    for each in rejected:
        print(f"line {each.line}: {each.code} {each.problem}")
