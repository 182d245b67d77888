"""Every example in README.md and docs/ is run as it stands; what it shows must be what comes out."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RETORT = os.environ.get("RETORT", str(ROOT / "build" / "retort"))


def examples():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.S):
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
                yield pytest.param(command, shown, id="%s: %s" % (page.name, command[:60]))


@pytest.mark.parametrize("command, shown", examples())
def test_an_example_shows_what_really_happens(command, shown):
    done = subprocess.run(["bash", "-c", command.replace("build/retort", RETORT)], cwd=ROOT,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60)
    pattern = re.escape(shown.strip()).replace("…", r"[\s\S]*?")
    assert re.fullmatch(pattern, done.stdout.strip()), done.stdout


def test_policy_example_is_a_policy(tmp_path):
    text = re.search(r"```yaml\n(.*?)```", (ROOT / "docs/languages.md").read_text(), re.S).group(1)
    policy = tmp_path / "policy.yaml"
    policy.write_text(text.replace("/usr/share/dict", "/usr/share"))
    done = subprocess.run([RETORT, "run", "-l", "python", "-c", "import os; return os.environ['REGION']",
                           "--policy", str(policy)], stdout=subprocess.PIPE, text=True)
    assert done.stdout == "eu\n"
