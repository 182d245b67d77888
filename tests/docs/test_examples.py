"""Every example in README.md and docs/ is run as it stands; what it shows must be what comes out.

An example that talks to 127.0.0.1:8002 finds a server there, on another port. What an example
assigns (ID=$(...)) the later ones of its block know: they run in one shell.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RETORT = os.environ.get("RETORT", str(ROOT / "build" / "retort"))


ADDRESS = "127.0.0.1:8002"


@pytest.fixture(scope="module")
def address():
    """Where the server of the examples really is."""
    folder = tempfile.mkdtemp(prefix="retort-docs-")
    process = subprocess.Popen([RETORT, "serve", "--port", "0", "--data-dir", folder, "--mcp-config",
                                ROOT / "examples/commits/mcp.json"], cwd=ROOT,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.DEVNULL)
    yield next(m.group(1) for line in process.stdout if (m := re.search(r"http://(\S+)", line)))
    process.terminate()
    process.wait(60)
    shutil.rmtree(folder)


MARK = "-- the next example --"


def examples():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.S):
            steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M)
            yield pytest.param(steps, id="%s: %s" % (page.name, steps[0][0][:60]))


@pytest.mark.parametrize("steps", examples())
def test_an_example_shows_what_really_happens(steps, request):
    script = f"\necho '{MARK}'\n".join(command for command, _ in steps)
    script = script.replace("build/retort", RETORT)
    if ADDRESS in script:
        script = script.replace(ADDRESS, request.getfixturevalue("address"))
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    for (command, shown), came in zip(steps, done.stdout.split(MARK), strict=True):
        pattern = re.escape(shown.strip()).replace("…", r"[\s\S]*?")
        assert re.fullmatch(pattern, came.strip()), f"$ {command}\n{came}"


def test_policy_example_is_a_policy(tmp_path):
    text = re.search(r"```yaml\n(extends.*?)```", (ROOT / "docs/languages.md").read_text(), re.S).group(1)
    policy = tmp_path / "policy.yaml"
    policy.write_text(text.replace("/usr/share/dict", "/usr/share"))
    done = subprocess.run([RETORT, "run", "-l", "python", "-c", "import os; return os.environ['REGION']",
                           "--policy", str(policy)], stdout=subprocess.PIPE, text=True)
    assert done.stdout == "eu\n"
