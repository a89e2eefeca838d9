"""A subscriber as a process of its own, to be killed: prints the id of every relation that it has acknowledged."""

from __future__ import annotations

import asyncio
import sys

import fairlead


async def main(url: str, name: str, rules: str) -> None:
    async with fairlead.connect(url) as fl, fl.subscribe(rules, name=name, start="earliest") as sub:
        async for relation in sub:
            print("got", relation.id, flush=True)
            await sub.ack(relation)
            print("ack", relation.id, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
