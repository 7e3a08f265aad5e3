"""Relevance feedback: what people say about hits makes a better query at once, and labels for the next `fit`.

rocchio.py       moves a query's embedding towards sequences that were judged relevant
judgements.py    judgements kept with the index: append-only, safe on disk when they are acknowledged
labels.py        judgements as queries and relevance, for `fit`
"""
