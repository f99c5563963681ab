"""What is checked before a world opens."""

from __future__ import annotations

import pytest

from arena.exceptions import SettingsError
from arena.runs.opening import choose_model, http_address
from sandbox.models import ModelRoute


@pytest.mark.parametrize("address", ["not-a-url", "ftp://host/v1", "host:8000/v1"])
def test_an_address_that_is_no_http_address_is_refused_with_an_example(address: str) -> None:
    with pytest.raises(SettingsError, match="no http address") as caught:
        http_address(address)
    assert "http://" in str(caught.value.remedy)


def test_one_of_several_models_must_be_chosen() -> None:
    routes = tuple(ModelRoute(name, "server", base_url="http://x/v1") for name in ("a", "b"))
    assert choose_model("b", routes) == "b"
    with pytest.raises(SettingsError, match="several models"):
        choose_model(None, routes)
    with pytest.raises(SettingsError, match="no model server has c"):
        choose_model("c", routes)
