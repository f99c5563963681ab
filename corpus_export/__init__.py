"""Records in, corpus out."""
