"""The gateway: the live runtime over HTTP, server-sent events and WebSockets.

serving.py       starts it and stops it
routes.py        all routes
publishing.py    events in
feed.py          relations out, each with an id from which a listener can resume
openapi.py       the description of all of it
"""
