"""A chain for development: the SDK's `Substrate` protocol over one file.

Registration, stake, permits, tempo, weights, commitments and a simple emission split, so
that the real SDK code runs over it unchanged. Many processes may use one file at once.
It keeps the shapes of the real chain and none of its security: whoever can write the
file can write anything. Records and pages say that a local chain stood in.
"""
