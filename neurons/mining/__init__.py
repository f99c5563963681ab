"""The miner: watches a file, submits it when it may, tells how it fares."""
