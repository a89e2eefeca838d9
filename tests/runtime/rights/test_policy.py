"""A policy says what it means, and everything else in it is an error with a code that repeats no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.errors import UsageError
from fairlead.runtime.rights.policy import Grant, policy_of
from fairlead.runtime.rights.server_config import server_config
from tests.cli.shop import fairlead

BCRYPT = "$2a$11$" + "a" * 53
NKEY = "U" + "A" * 55


def test_users_have_their_own_rights_and_those_of_their_roles() -> None:
    policy = policy_of(
        f"""
        users:
          desk: {{role: [reader, clock], nkey: {NKEY}, names: [desk-1], subscribe: [stock.Delivery]}}
          shop: {{password: $SHOP, publish: [orders]}}
          boss: {{password: '{BCRYPT}', manage: true}}
        roles:
          reader: {{subscribe: [orders], names: [spare], rate: 5}}
          clock: {{heartbeat: true}}
        """
    )
    desk, shop, boss = (policy.users[name] for name in ("desk", "shop", "boss"))
    assert set(desk.subscribe) == {Grant("orders"), Grant("stock", "Delivery")}
    assert (set(desk.names), desk.sources, desk.rate) == ({"spare", "desk-1"}, ("desk",), 5.0)
    assert desk.may_read("orders", "Order")
    assert desk.may_read("stock", "Delivery")
    assert not desk.may_read("stock", "Count")
    assert desk.may_publish("orders", "Heartbeat")
    assert not desk.may_publish("orders", "Order")
    assert shop.may_publish("orders", "Order")
    assert not shop.may_publish("orders", "Heartbeat")
    assert shop.owns_source("shop")
    assert not shop.owns_source("shop-1")
    assert boss.may_read("secret", "Secret")
    assert BCRYPT not in repr(policy)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[", "A420"),
        ("users: 7", "A420"),
        ("users: {a: 7}", "A420"),
        ("users: {}\nmore: {}", "A420"),
        ("users: {'a b': {}}", "A421"),
        ("users: {a: {role: none}}", "A421"),
        ("users: {a: {publsh: [x]}}", "A421"),
        ("users: {a: {publish: x}}", "A421"),
        ("users: {a: {publish: ['a.b.c']}}", "A421"),
        ("users: {a: {publish: ['*']}}", "A421"),
        ("users: {a: {names: ['a b']}}", "A421"),
        ("users: {a: {names: ['']}}", "A421"),
        ("users: {a: {names: ['>']}}", "A421"),
        ("users: {a: {names: ['b.c']}}", "A421"),
        ("users: {a: {names: ['ä\"']}}", "A421"),
        ("users: {a: {role: {b: 1}}}", "A421"),
        ("users: {a: {role: [[b]]}}", "A421"),
        ("users: {a: {role: }}", "A421"),
        ("users: {}\nroles: {b: {role: c}}", "A421"),
        ("users: {}\nroles: {b: {password: $HUNTER2}}", "A421"),
        ("users:\n  a: {publish: [b]}\n  a: {manage: true}", "A420"),
        ("users:\n  a:\n    publish: [b]\n    publish: [c]", "A420"),
        ("users: {a: {manage: 1}}", "A421"),
        ("users: {a: {rate: 0}}", "A421"),
        ("users: {a: {password: hunter2}}", "A422"),
        ("users: {a: {password: $user}}", "A422"),
        ("users: {a: {password: $jetstream}}", "A422"),
        ("users: {a: {token: hunter2}}", "A422"),
        ("users: {a: {nkey: SUAHUNTER2}}", "A422"),
        (f"users: {{a: {{nkey: {NKEY}}}, b: {{nkey: {NKEY}}}}}", "A422"),
    ],
)
def test_what_a_policy_does_not_say_is_an_error(text: str, code: str) -> None:
    with pytest.raises(UsageError, match=code) as found:
        policy_of(text)
    assert "unter2" not in str(found.value).lower()
    assert found.value.fix


def test_a_policy_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    result = fairlead("gateway", "--url", "memory:", "--policy", str(tmp_path / "none.yaml"))
    assert result.exit_code == 2
    assert "A423" in result.stderr


def test_a_token_and_its_hash_are_made() -> None:
    result = fairlead("rights", "token")
    assert policy_of(f"users: {{a: {{{result.stdout.strip()}}}}}").users["a"].token
    assert result.stderr.startswith("token: ")
    assert result.stderr.split()[1] not in result.stdout


@pytest.mark.parametrize("name", ["größe", "Καλά", "_x"])
def test_every_topic_and_source_of_a_policy_is_plain_text_in_the_configuration(name: str) -> None:
    """A server knows few escapes, and no other way to quote."""
    policy = policy_of(
        f"""
        users:
          a:
            password: $A
            publish: [{name}.{name}, main]
            subscribe: [{name}]
            sources: ['x"}}]$B', 'ä\\n', '>', '=e', 'a.b']
        """
    )
    made = server_config(policy)
    assert made.isascii()
    assert "\\" not in made
    assert not {"B", "x"} & {each.strip('"') for each in made.replace(".", " ").split()}


def test_a_policy_of_which_nobody_may_connect_configures_no_server() -> None:
    """A server that knows no user lets everybody in."""
    with pytest.raises(UsageError, match="A421"):
        server_config(policy_of(f"users: {{a: {{token: 'sha256:{'0' * 64}', manage: true}}}}"))
