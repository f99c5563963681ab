"""Sampling from a model in this process: batched, with a KV cache, exact log-probabilities.

policy = EnginePolicy(Engine(model, EngineLimits()), stop_ids=renderer.stop_ids)
[generated] = await policy.generate([prompt_ids], Sampling(temperature=0.9, seed=1))
"""
