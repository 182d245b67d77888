# SPDX-License-Identifier: Apache-2.0
"""One server for all languages, and which of them this host has.

    execute("perl", "print 6 * 7")["result"]                 one run, as its JSON answer
    execute("c", CODE, policy={"memory": "128M"})
"""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "service"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from house import serve  # noqa: E402
from installed import INSTALLED  # noqa: E402


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """With a language of the operator's own beside those that ship."""
    folder = tmp_path_factory.mktemp("languages")
    (folder / "sed.yaml").write_text(
        'name: sed\nending: sed\nabout: an editor\nrun: [sed, -f, "{file}"]\nversion: [sed, --version]\n'
        "error: 'line (?<line>\\d+): (?<message>.+)'\n")
    (folder / "cobol.yaml").write_text('name: cobol\nending: cob\nrun: [no-such-cobol, "{file}"]\n')
    os.chmod(folder, 0o755)
    with serve("--server.rate_per_minute", "0", env={"RETORT_LANGUAGES": str(folder)}) as one:
        yield one


@pytest.fixture(scope="session")
def execute(server):
    def execute(language, code, **members):
        return server.run(code, language, **members)
    return execute


@pytest.fixture
def need():
    def need(language):
        if not INSTALLED[language]["available"]:
            pytest.skip(INSTALLED[language]["detail"])
    return need
