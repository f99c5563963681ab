"""What is minimised, as pure functions of tensors: no model, no files, no state.

Everything here is aligned to tokens: `logprobs[b, t]` is the logarithm of the probability of
token `t` given the tokens before it, and `mask[b, t]` says that the model wrote token `t` and
shall learn from it. Position 0 is predicted by nothing: its mask has to be 0.
"""
