"""Hierarchies: what one subscription emits, another reads; a subscriber of a supertype also receives its subtypes.

Prints:

    at 2: Traffic 0, 2
    at 3: Guessing 0, 2, 3 emits Suspicion {'user': 'u1', 'place': 'north'}
    at 4: Breach 4, 3+1 emits Alarm {'user': 'u1', 'place': 'north'}
    at 4: Traffic 3, 4
"""

import fairlead

RULES = """
TYPE Failure (user STRING, place STRING)
TYPE PasswordFailure EXTENDS Failure (length INT)
TYPE TokenFailure EXTENDS Failure (device STRING)
TYPE Login (user STRING, place STRING)
EVENT UNION Activity = Failure + Login

SUBSCRIPTION Guessing         -- three failures of one user, of whatever kind
MATCH Failure f[3] PER user
EMIT Suspicion(user = f[1].user, place = f[3].place)

SUBSCRIPTION Breach           -- the guessing succeeds: a rule on what the rule above emits
MATCH Suspicion s THEN Login l
WHERE s.place = l.place
PER user
EMIT Alarm(user = l.user, place = l.place)

SUBSCRIPTION Traffic          -- a rule on a union: any two activities at one place
MATCH Activity a[2] PER place
"""

EVENTS = [
    {"type": "PasswordFailure", "user": "u1", "place": "north", "length": 9},
    {"type": "Login", "user": "u2", "place": "south"},
    {"type": "TokenFailure", "user": "u1", "place": "north", "device": "d7"},
    {"type": "Failure", "user": "u1", "place": "north"},
    {"type": "Login", "user": "u1", "place": "north"},
]

# A derived event stands directly after the event that completed it: 3+1 comes after 3 and before 4.
for relation in fairlead.match(fairlead.compile(RULES), EVENTS):
    emitted = f" emits {relation.emitted_type} {relation.emitted}" if relation.emitted_type else ""
    print(f"at {relation.completed_at}: {relation.subscription} {', '.join(map(str, relation.positions))}{emitted}")
