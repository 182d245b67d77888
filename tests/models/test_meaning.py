# SPDX-License-Identifier: Apache-2.0
"""Tool search by an installed model, when models.default names one."""

import json

import pytest

import reference
from calling import call

TOOLS = [{"name": name, "description": text, "category": "c"} for name, text in (
    ("mail:send", "Send an email"), ("weather:forecast", "Weather for a place"), ("git:commits", "List commits"))]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    reference.make(folder / "small")
    (folder / "tools.json").write_text(json.dumps(TOOLS))
    place = ("--data-dir", folder / "data")
    assert call("models", "add", folder / "small", *place).status == 0
    assert call("tools", "import", folder / "tools.json", *place).status == 0
    return place


def hits(data, *flags):
    ended = call("tools", "search", "send an email", "--json", *data, *flags)
    assert ended.status == 0, ended.stderr
    return json.loads(ended.stdout)


def test_a_model_is_asked_only_when_the_settings_name_it(data):
    plain, modelled = hits(data), hits(data, "--models.default", "small")
    assert plain != modelled
    assert plain == hits(data, "--models.default", "")


def test_a_model_that_is_not_installed_is_an_error_that_says_so(data):
    ended = call("tools", "search", "x", *data, "--models.default", "smal")
    assert ended.status == 2 and "models.default: model smal is not installed; did you mean small?" in ended.stderr
