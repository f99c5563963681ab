"""Continuous batching against the plain forward pass: ids, log-probabilities, stops, cache."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.training.generation.models import CONTEXT, plain_logprobs, prompt, tiny_model
from training.exceptions import PolicyError
from training.generation.engine import Engine, EngineLimits, Request
from training.types import Generated, Sampling, Stop

MODEL = tiny_model()
NEVER = (96,)
"""A stop token; it comes by chance now and then, as it should."""


def engine(batch: int = 4, prefill_tokens: int = 2048, context: int | None = None) -> Engine:
    return Engine(MODEL, EngineLimits(batch, context, prefill_tokens))


def finished(runner: Engine) -> list[Request]:
    done = []
    while runner.busy:
        done += runner.step()
    return done


def alone(given: list[int], sampling: Sampling) -> Generated:
    runner = engine(batch=1)
    request = runner.submit(given, sampling, NEVER)
    finished(runner)
    return request.generated


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_log_probabilities_are_those_of_a_plain_pass_at_the_temperature(
    temperature: float,
) -> None:
    given = prompt(30, seed=1)
    said = alone(given, Sampling(temperature, top_p=0.9, max_tokens=25, seed=5))
    expected = plain_logprobs(MODEL, given, said.ids, temperature or 1.0)
    assert said.logprobs == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("window", [2, 8])
def test_a_sliding_layer_sees_in_the_cache_what_it_sees_in_a_plain_pass(window: int) -> None:
    """Prompts of several widths in one batch, cut up, and a second turn out of the cache."""
    kinds = ["sliding_attention", "full_attention"]
    model = tiny_model(use_sliding_window=True, sliding_window=window, layer_types=kinds)
    runner = Engine(model, EngineLimits(3, None, 16))
    drawing = Sampling(1.0, max_tokens=12, seed=5)
    for turn in range(2):
        given = [prompt(length + 30 * turn, seed=length) for length in (1, 7, 30)]
        requests = [runner.submit(one, drawing, NEVER) for one in given]
        finished(runner)
        for one, request in zip(given, requests, strict=True):
            said = request.generated
            expected = plain_logprobs(model, one, said.ids, 1.0)
            assert said.logprobs == pytest.approx(expected, abs=1e-4)


def test_greedy_tokens_are_those_of_a_plain_pass() -> None:
    given = prompt(20, seed=2)
    said = alone(given, Sampling(0.0, max_tokens=12))
    sequence = list(given)
    for token in said.ids:
        with torch.no_grad():
            logits = MODEL(input_ids=torch.tensor([sequence]), use_cache=False).logits[0, -1]
        assert token == int(logits.argmax())
        sequence.append(token)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 20)), min_size=1, max_size=9),
    st.integers(1, 5),
    st.sampled_from([16, 64, 2048]),
    st.lists(st.integers(0, 3), max_size=9),
)
def test_what_is_drawn_depends_on_nothing_beside_it(
    asked: list[tuple[int, int]], batch: int, prefill: int, pauses: list[int]
) -> None:
    runner = engine(batch, prefill)
    requests = []
    for i, (length, tokens) in enumerate(asked):
        sampling = Sampling(0.9, 0.95, tokens, seed=i)
        requests.append((prompt(length, seed=i % 4), sampling))
    submitted = []
    for i, (given_ids, sampling) in enumerate(requests):
        submitted.append(runner.submit(given_ids, sampling, NEVER))
        for _ in range(pauses[i] if i < len(pauses) else 0):
            runner.step()
    finished(runner)
    for request, (given_ids, sampling) in zip(submitted, requests, strict=True):
        expected = alone(given_ids, sampling)
        assert request.generated.ids == expected.ids
        assert request.generated.stop is expected.stop
        assert request.generated.logprobs == pytest.approx(expected.logprobs, abs=1e-4)


def test_one_seed_gives_the_same_tokens_and_another_gives_others() -> None:
    given = prompt(10, seed=3)
    first, again, other = (
        alone(given, Sampling(1.0, max_tokens=20, seed=s)).ids for s in (1, 1, 2)
    )
    assert first == again != other


def test_a_stop_token_ends_the_generation_and_is_its_last() -> None:
    given = prompt(10, seed=4)
    free = alone(given, Sampling(1.0, max_tokens=30, seed=9)).ids
    stop = free[11]
    cut = alone(given, Sampling(1.0, max_tokens=30, seed=9, stop_ids=(stop,)))
    assert cut.stop is Stop.END
    assert cut.ids == free[: free.index(stop) + 1]
    assert len(cut.logprobs) == len(cut.ids)


def test_the_most_tokens_and_the_context_end_a_generation_for_want_of_room() -> None:
    said = alone(prompt(10, seed=5), Sampling(1.0, max_tokens=7, seed=1))
    assert (len(said.ids), said.stop) == (7, Stop.LENGTH)
    at_edge = alone(prompt(CONTEXT - 3, seed=5), Sampling(1.0, max_tokens=50, seed=1))
    assert (len(at_edge.ids), at_edge.stop) == (3, Stop.LENGTH)
    too_long = alone(prompt(CONTEXT, seed=5), Sampling(1.0, max_tokens=50, seed=1))
    assert (too_long.ids, too_long.stop) == ((), Stop.LENGTH)


def test_a_stop_token_that_is_the_last_one_allowed_counts_as_the_end() -> None:
    given = prompt(10, seed=4)
    free = alone(given, Sampling(1.0, max_tokens=30, seed=9)).ids
    stop = free[11]
    at = free.index(stop) + 1
    assert alone(given, Sampling(1.0, max_tokens=at, seed=9, stop_ids=(stop,))).stop is Stop.END


def test_the_next_turn_of_a_conversation_computes_only_what_is_new() -> None:
    runner = engine()
    first = prompt(40, seed=6)
    said = runner.submit(first, Sampling(1.0, max_tokens=10, seed=1), NEVER)
    finished(runner)
    longer = [*first, *said.ids, *prompt(15, seed=7)]
    next_turn = runner.submit(longer, Sampling(1.0, max_tokens=10, seed=2), NEVER)
    finished(runner)
    # All but the last sampled token, which never went through the model.
    assert next_turn.cached == 40 + 10 - 1
    assert next_turn.generated.logprobs == pytest.approx(
        plain_logprobs(MODEL, longer, next_turn.ids, 1.0), abs=1e-4
    )


def test_samples_of_one_prompt_compute_it_once() -> None:
    runner = engine(batch=4)
    given = prompt(100, seed=8)
    requests = [runner.submit(given, Sampling(1.0, max_tokens=8, seed=i), NEVER) for i in range(4)]
    finished(runner)
    assert [request.cached for request in requests] == [0, 99, 99, 99]
    for i, request in enumerate(requests):
        assert request.ids == list(alone(given, Sampling(1.0, max_tokens=8, seed=i)).ids)


def test_another_conversation_with_the_same_beginning_does_not_take_the_row() -> None:
    runner = engine(batch=3)
    head = prompt(50, seed=9)
    first = [*head, *prompt(30, seed=10)]
    said = runner.submit(first, Sampling(1.0, max_tokens=20, seed=1), NEVER)
    finished(runner)
    other = runner.submit([*head, *prompt(30, seed=11)], Sampling(1.0, max_tokens=5, seed=2), NEVER)
    finished(runner)
    assert other.cached == 50
    next_turn = runner.submit([*first, *said.ids, 1, 2], Sampling(1.0, max_tokens=5, seed=3), NEVER)
    finished(runner)
    assert next_turn.cached == 80 + 20 - 1


@pytest.mark.parametrize("first", [False, True])
def test_a_cancelled_request_makes_room_and_disturbs_nobody(first: bool) -> None:
    runner = engine(batch=2)
    drawing = Sampling(1.0, max_tokens=20, seed=2)
    if first:
        # The other one takes its row over.
        dropped = runner.submit(prompt(15, seed=2), drawing, NEVER)
    kept = runner.submit(prompt(12, seed=1), Sampling(1.0, max_tokens=20, seed=1), NEVER)
    if not first:
        dropped = runner.submit(prompt(15, seed=2), drawing, NEVER)
    queued = runner.submit(prompt(18, seed=3), Sampling(1.0, max_tokens=20, seed=3), NEVER)
    runner.step()
    runner.cancel(dropped)
    finished(runner)
    assert dropped.stop is Stop.ERROR
    assert kept.generated == _near(alone(prompt(12, seed=1), kept.sampling), kept.generated)
    assert queued.generated == _near(alone(prompt(18, seed=3), queued.sampling), queued.generated)


def _near(expected: Generated, got: Generated) -> Generated:
    """`expected` with the other's log-probabilities, where they are near enough."""
    assert got.logprobs == pytest.approx(expected.logprobs, abs=1e-4)
    return Generated(expected.ids, got.logprobs, expected.stop)


def test_a_model_in_training_mode_is_not_sampled_from() -> None:
    model = tiny_model()
    runner = Engine(model)
    runner.submit(prompt(5, seed=1), Sampling(), NEVER)
    model.train()
    with pytest.raises(PolicyError, match="eval"):
        runner.step()


def test_broken_weights_are_told_and_sample_nothing() -> None:
    model = tiny_model()
    with torch.no_grad():
        model.lm_head.weight.fill_(torch.nan)
    runner = Engine(model)
    runner.submit(prompt(5, seed=1), Sampling(), NEVER)
    with pytest.raises(PolicyError, match="no numbers"):
        runner.step()


def test_a_prompt_without_a_token_is_refused() -> None:
    with pytest.raises(PolicyError, match="without a token"):
        engine().submit([], Sampling(), NEVER)


def test_the_models_own_attention_is_back_after_each_step() -> None:
    runner = engine()
    runner.submit(prompt(5, seed=1), Sampling(1.0, max_tokens=3, seed=1), NEVER)
    finished(runner)
    assert MODEL.config._attn_implementation == "sdpa"
