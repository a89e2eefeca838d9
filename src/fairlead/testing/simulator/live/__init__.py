"""The live part, simulated: the client that users run, with simulated time, network, servers, crashes and clocks.

event_loop.py  asyncio without waiting; nodes that crash, pause and resume at any step
servers.py     the log, whose merged streams copy blocks later, and sometimes again
network.py     requests and answers that are lost, late or repeated; leaders that are cut off
cases.py       the publishers, the subscribers and what fails, by a seed
actors.py      subscribers and other processes, which record what they do
publishing_actor.py    publishers
simulation.py  a whole run, judged by the checker of histories (testing/history/)
"""
