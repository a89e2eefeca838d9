"""What happened in a run of publishers, subscribers and a log; and a checker that knows nothing of the code that ran.

values.py         what was published and confirmed, what the log holds, what each subscriber received and acknowledged
publishing.py     nothing confirmed is lost, nothing is doubled or invented, the order of every publisher is kept
deliveries.py     every subscriber received what the reference matcher finds in the log, in that order, and resumed rightly
event_time.py     the signed deliveries that are due with ORDER BY and LATE REVISE
expectation.py    the relations and receipts that are due
checker.py        all of it: check(history) -> problems
"""
