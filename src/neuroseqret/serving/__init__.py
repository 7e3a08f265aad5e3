"""The HTTP server over one index, and its client.

From the request to the answer:

    running.py       `neuroseqret serve`: settings, processes, sockets
    app.py           puts routes and what surrounds them together
    connections.py   the heads of requests arrive in time and are not endless
    middleware.py    request ids, headers, the log: what happens to every request
    gate.py          who calls, and whether the call may pass
    requests.py      reading bodies within limits
    uploads.py       bodies of many sequences, added batch by batch
    routes/          one file per noun of the interface
    request_shapes.py  bodies of requests as typed models: what OpenAPI shows
    reply_shapes.py  replies, likewise
    bodies.py        sequences in JSON to `EventSequences`
    replies.py       sequences and hits to JSON
    service.py       the verbs of the server in Python types
    searching.py     a batch of searches against one commit, step by step
    batching.py      concurrent queries are embedded and searched together
    statistics.py    what the corpus holds, for a page's filters

Safety and operation:

    limits.py        how much one request, one key and all of them may ask for
    keys.py          keys with scopes and an expiry, stored as hashes
    problems.py      errors as problem documents
    logs.py          one JSON line per request; the audit log of writes
    metrics.py       counters for Prometheus
    telemetry.py     spans for OpenTelemetry

The client:

    client.py        `connect`: the verbs of `Index` over HTTP
    client_json.py   the JSON that it sends and gets
    transport.py     retries, time limits and errors of the client
"""
