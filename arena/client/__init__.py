"""The arena's API from the other side: signed calls that are tried again, for both neurons."""
