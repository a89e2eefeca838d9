"""The description of the gateway, as OpenAPI 3.1. Every route has its operation here (routes.py combines them).

Gives: the operations and the schemas. Never: describes what the handlers do not do; a test compares.
"""

from __future__ import annotations

from typing import Any

from fairlead import __version__
from fairlead.deliver.receipt import OUTCOMES
from fairlead.model.events.verdict import EventVerdict
from fairlead.transport.output.cloud_events import BATCHED, JSON, STRUCTURED
from fairlead.web.bodies import LINES
from fairlead.web.streams.asked import EARLY, FORMATS, WINDOW, WINDOW_MAX

Described = dict[str, Any]
TEXT: Described = {"type": "string"}
COUNT: Described = {"type": "integer", "minimum": 0}


def _object(required: str = "", **properties: Described) -> Described:
    return {"type": "object", "properties": properties, "required": required.split() or list(properties)}


def _array(items: Described) -> Described:
    return {"type": "array", "items": items}


def _ref(name: str) -> Described:
    return {"$ref": f"#/components/schemas/{name}"}


SCHEMAS: Described = {
    "Error": _object(code=TEXT, place={"type": ["string", "null"]}, problem=TEXT, fix={"type": ["string", "null"]}),
    "Record": {
        "type": "object",
        "description": "The attributes of an event beside its type. With _source and _sequence, numbers that rise for every "
        "source and type, an event that is sent again is stored once.",
        "properties": {"type": TEXT, "_source": TEXT, "_sequence": COUNT},
        "additionalProperties": True,
    },
    "CloudEvent": {
        "type": "object",
        "properties": {"specversion": {"const": "1.0"}, "id": TEXT, "source": TEXT, "type": TEXT, "sequence": TEXT},
        "required": ["specversion", "id", "source", "type"],
        "additionalProperties": True,
    },
    "Counts": _object(stored=COUNT, repeated=COUNT),
    "Type": _object(name=TEXT, attributes=_array(_object(name=TEXT, type=TEXT)), time={"type": ["string", "null"]}),
    "Relation": _object(
        "subscription id branch completed_at positions events emitted",
        subscription=TEXT,
        id=TEXT,
        branch=COUNT,
        completed_at={"type": ["integer", "string"]},
        positions=_array({"type": ["integer", "string"]}),
        events=_array({"type": "object"}),
        emitted={"type": "object"},
        sign={"enum": [1, -1], "default": 1, "description": "-1: the delivery takes the relation back"},
        early={"type": "boolean", "default": False, "description": "It is delivered before the delay has passed"},
    ),
    "EventReport": {
        "description": "An event that took no part in the order of the rules (ORDER BY), and why.",
        **_object(
            verdict={"enum": [each.value for each in EventVerdict]},
            type=TEXT,
            source={"type": ["string", "null"]},
            sequence={"type": ["integer", "null"]},
            position={"type": ["integer", "string"]},
            time={"type": ["string", "null"]},
            subscriptions=_array(TEXT),
            event={"type": "object"},
        ),
    },
    "Receipt": {
        "description": "Deliveries, as a rolling digest. `count`: those of the lineage, that is of all subscribers with the "
        "same rules and start; `joined`: those before this subscriber joined; `delivered`: those that it got.",
        **_object(
            plan=TEXT,
            count=COUNT,
            joined=COUNT,
            delivered=COUNT,
            digest=TEXT,
            joined_digest=TEXT,
            stride=COUNT,
            samples=_array(TEXT),
        ),
    },
    "Comparison": {
        "description": "`agree`: what both delivered is the same, and one has more, since it is further or joined earlier. "
        "`start`: the number of the first delivery after both had joined; `agreed`: how many agree from there on.",
        **_object(
            outcome={"enum": list(OUTCOMES)},
            equal={"type": "boolean"},
            agreed=COUNT,
            start=COUNT,
            problem={"type": ["string", "null"]},
        ),
    },
}


def _content(schema: Described, *media: str) -> Described:
    return {"content": {each: {"schema": schema} for each in media or (JSON,)}}


def _answer(text: str, schema: Described | None = None, *media: str) -> Described:
    return {"description": text} | ({} if schema is None else _content(schema, *media))


WHY = {
    400: "Not understood",
    401: "The bearer token is missing or wrong",
    403: "Not allowed",
    404: "There is none",
    408: "The body did not arrive in time",
    409: "It contradicts what is stored",
    413: "Too large",
    415: "A media type that is not read",
    421: "The request names another host",
    422: "It does not fit the declared types, or the text has an error",
    429: "Too many requests per second",
    500: "A bug",
    503: "The log does not answer, or it or the gateway is full",
    504: "It took too long",
}


def operation(summary: str, answers: dict[int, Described], *errors: int, **more: Any) -> Described:
    """`errors`: in addition to those that every operation may have."""
    told = {status: _answer(WHY[status], _ref("Error")) for status in sorted({401, 403, 408, 421, 429, 500, 503, 504, *errors})}
    return {"summary": summary, "responses": {str(status): each for status, each in (told | answers).items()}} | more


def _query(name: str, text: str, schema: Described = TEXT, *, required: bool = False, where: str = "query") -> Described:
    return {"name": name, "in": where, "description": text, "required": required, "schema": schema}


NAME = _query("name", "The subscriber's name.", required=True, where="path")
STREAM = [
    NAME,
    _query("rules", "Optional: the rules that the name is subscribed to; a GET changes nothing."),
    _query("after", "The id of the last delivery that the listener has; Last-Event-ID has precedence."),
    _query(
        "early",
        "Send relations also before the DELAY of the rules has passed; final: those that no other event can change.",
        {"enum": list(EARLY), "default": "false"},
    ),
    _query("format", "Relations as they are, or as CloudEvents.", {"enum": list(FORMATS), "default": FORMATS[0]}),
]
LAST_ID = _query("Last-Event-ID", "Resume after this delivery; it and all before it are acknowledged.", where="header")
WINDOW_QUERY = _query(
    "window",
    "Relations sent and not acknowledged.",
    {"type": "integer", "minimum": 1, "maximum": WINDOW_MAX, "default": WINDOW},
)
MESSAGES = (
    "Messages with event and data: relation, or retraction if a relation is taken back, both a Relation with an id; early and "
    "early-retraction, the same before the delay has passed, without an id; verdict, an EventReport; error before the end"
)
RECORDS = {"oneOf": [_ref("Record"), _array(_ref("Record"))]}

HEALTH = operation(
    "Whether the log answers",
    {200: _answer("It does", _object(status=TEXT)), 503: _answer("It does not", _object(status=TEXT))},
    security=[],
)
METRICS = operation("Counters, in the text format of Prometheus", {200: _answer("Counters", TEXT, "text/plain")})
DESCRIPTION = operation("This description", {200: _answer("OpenAPI 3.1", {"type": "object"})})
PUBLISH = operation(
    "Publish events: all of them, or none",
    {
        202: _answer("They are stored", _ref("Counts")),
        200: _answer("All of them were stored before, or there were none", _ref("Counts")),
    },
    *(400, 409, 413, 415, 422, 503),
    description="A CloudEvent in binary mode has its attributes in headers ce-… and its data as the body.",
    parameters=[_query("type", "Of records that do not say it.")],
    requestBody={
        "required": True,
        "content": _content(RECORDS)["content"]
        | _content(TEXT, LINES)["content"]
        | _content(_ref("CloudEvent"), STRUCTURED)["content"]
        | _content(_array(_ref("CloudEvent")), BATCHED)["content"],
    },
)
TYPES = operation("All declared types", {200: _answer("Types", _object(types=_array(_ref("Type"))))}, 503)
DECLARE = operation(
    "Declare types, for all clients of the log",
    {200: _answer("Their names", _object(types=_array(TEXT)))},
    *(400, 409, 413, 422, 503),
    requestBody={
        "required": True,
        "content": _content(TEXT, "text/plain")["content"] | _content(_object(text=TEXT))["content"],
    },
)
SUBSCRIBE = operation(
    "Make a durable subscription, or see that it is there",
    {201: _answer("It is there", _object(name=TEXT, subscriptions=_array(TEXT), digest=TEXT, warnings=_array(_ref("Error"))))},
    *(400, 409, 413, 422, 503),
    requestBody={
        "required": True,
        **_content(_object("name rules", name=TEXT, rules=TEXT, start={"type": ["string", "integer"], "default": "new"})),
    },
)
FORGET = operation(
    "Forget a subscriber that will not come back", {204: _answer("It is forgotten")}, 400, 404, 503, parameters=[NAME]
)
EVENTS = operation(
    "Relations as server-sent events",
    {200: _answer(MESSAGES, TEXT, "text/event-stream")},
    *(400, 404, 409, 422, 503),
    parameters=[*STREAM, LAST_ID],
)
SOCKET = operation(
    "Relations by WebSocket, with acknowledgements",
    {
        101: _answer(
            'Out: {"id", "relation"}, {"id", "retraction"}, {"early"}, {"early-retraction"}, {"verdict"}, {"acknowledged"}, '
            '{"error"}. In: {"acknowledge": id}'
        )
    },
    *(400, 404, 409, 422, 503),
    parameters=[*STREAM, LAST_ID, WINDOW_QUERY],
)
ACKNOWLEDGE = operation(
    "Acknowledge everything up to a delivery of a stream that is open",
    {200: _answer("It is stored", _object(acknowledged=TEXT))},
    *(400, 409, 413, 503),
    parameters=[NAME],
    requestBody={"required": True, **_content(_object(id=TEXT))},
)
RECEIPTS = operation(
    "What a subscriber has acknowledged, by group of subscriptions",
    {200: _answer("Receipts", _object(receipts={"type": "object", "additionalProperties": _ref("Receipt")}))},
    *(400, 404, 503),
    parameters=[NAME],
)
COMPARE = operation(
    "Whether two subscribers have acknowledged the same, in the same order",
    {200: _answer("The comparison", _ref("Comparison"))},
    *(400, 404, 503),
    parameters=[_query("a", "A name.", required=True), _query("b", "Another.", required=True)],
)


def document(paths: Described) -> Described:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fairlead gateway",
            "version": __version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"bearer": []}, {}],
        "paths": paths,
        "components": {"schemas": SCHEMAS, "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}},
    }
