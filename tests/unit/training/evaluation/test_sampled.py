from __future__ import annotations

from sandbox.models import ChatRequest, ModelRoute
from scoring.types import JsonObject
from training.evaluation.cli import _chosen
from training.evaluation.sampled import SampledModels, SampleSettings


def sent(settings: SampleSettings, sample: int = 0, text: str = "hello") -> JsonObject:
    models = SampledModels([ModelRoute("m", "s")], settings, sample)
    message: JsonObject = {"role": "user", "content": text}
    return models.params(ChatRequest("m", (message,), {"temperature": 0, "max_tokens": 9}))


def test_without_settings_an_agent_gets_what_it_asks_for() -> None:
    assert sent(SampleSettings()) == {"temperature": 0, "max_tokens": 9}


def test_the_evaluations_sampling_takes_the_agents_place_and_nothing_else() -> None:
    params = sent(SampleSettings(2, temperature=0.7, top_p=0.9))
    assert params.keys() == {"temperature", "max_tokens", "top_p", "seed"}
    assert (params["temperature"], params["top_p"], params["max_tokens"]) == (0.7, 0.9, 9)


def test_an_answer_has_at_most_the_evaluations_tokens_and_the_agents() -> None:
    assert sent(SampleSettings(turn_tokens=100))["max_tokens"] == 9
    assert sent(SampleSettings(turn_tokens=4))["max_tokens"] == 4


def test_a_seed_follows_from_evaluation_sample_and_conversation() -> None:
    settings = SampleSettings(2, temperature=0.7, seed=1)
    seeds = [
        sent(settings)["seed"],
        sent(settings, sample=1)["seed"],
        sent(settings, text="other")["seed"],
        sent(SampleSettings(2, temperature=0.7, seed=2))["seed"],
    ]
    assert len({str(seed) for seed in seeds}) == 4
    assert sent(settings)["seed"] == seeds[0]
    assert all(isinstance(seed, int) and 0 <= seed < 2**31 for seed in seeds)


def test_options_go_before_the_recipe_and_the_recipe_before_defaults() -> None:
    def chosen(recipe: str | None, samples: int | None, temperature: float | None) -> JsonObject:
        said = _chosen(recipe, None, samples, temperature, None, None, None, "x")
        return said.settings.to_json()

    assert chosen(None, None, None) == {
        "samples": 1, "temperature": None, "top_p": None, "seed": 0, "turn_tokens": None,
    }  # fmt: skip
    assert chosen(None, 4, None)["temperature"] == 0.9
    assert chosen("eval_pass8", None, None) == {
        "samples": 8, "temperature": 0.9, "top_p": 0.95, "seed": 0, "turn_tokens": None,
    }  # fmt: skip
    assert chosen("eval_pass8", 2, 0.5) == {
        "samples": 2, "temperature": 0.5, "top_p": 0.95, "seed": 0, "turn_tokens": None,
    }  # fmt: skip
