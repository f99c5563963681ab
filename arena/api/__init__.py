"""The arena's HTTP API: what `oro-sdk` speaks under `/v1`, and the signed records beside it."""
