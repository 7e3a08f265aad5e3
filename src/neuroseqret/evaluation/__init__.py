"""Compare ranking methods on labelled queries.

In the order of an evaluation:

- `protocol`: the task, which is the same for every method: queries, candidates, what may be learned from.
- `scoring`: let a method score a task; measures and the top of every ranking come out.
- `cache`: results by a key of everything they depend on, so that nothing is computed twice.
- `runner`: fit or load each method, score the task, keep the result or the reason of a failure.
- `significance`: tests, confidence intervals and Holm's correction over queries.
- `report`: the results side by side, as a table, as JSON and as files.
- `evaluate`: all of it in one call, in Python as on the command line.
"""
