"""The gateway: the live runtime over HTTP, server-sent events and WebSockets.

serving.py       starts it and stops it
routes.py        what can be asked for
publishing.py    events in
feed.py          relations out, each with an id from which one can resume
openapi.py       all of it described
"""
