# SPDX-License-Identifier: Apache-2.0
"""retort config: the settings in force, their sources, and the documents that come from the table."""

import json
import os
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def config(retort, tmp_path, monkeypatch):
    """retort config in a directory, home and environment of its own."""
    for name in list(os.environ):
        if name.startswith(("RETORT_", "CODE_EXEC_", "DB_", "XDG_DATA_HOME", "GEMINI_")):
            monkeypatch.delenv(name)
    here, home = tmp_path / "here", tmp_path / "home"
    here.mkdir()
    home.mkdir()

    def config(*args, env=None, **files):
        for name, text in files.items():
            (here / {"yaml": "retort.yaml", "dotenv": ".env"}[name]).write_text(text)
        return retort("config", *args, cwd=here, env={"HOME": str(home), **(env or {})})

    config.here, config.home = here, home
    return config


def settings(ended):
    assert ended.status == 0, ended.stderr
    return {key: (row["value"], row["source"]) for key, row in json.loads(ended.stdout)["settings"].items()}


# ---- layers ----

def test_each_layer_wins_over_the_one_before_and_is_named(config):
    assert settings(config("--json"))["server.port"] == (8002, "default")
    yaml = {"yaml": "# mine\nserver:\n  port: 9001\n"}
    assert settings(config("--json", **yaml))["server.port"] == (9001, "retort.yaml:3")
    assert settings(config("--json", dotenv="RETORT_PORT=9002\n"))["server.port"] == (9002, ".env:1")
    env = {"RETORT_PORT": "9003"}
    assert settings(config("--json", env=env))["server.port"] == (9003, "environment RETORT_PORT")
    assert settings(config("--json", "--port", "9004", env=env))["server.port"] == (9004, "flag --port")


def test_the_table_shows_key_value_and_source(config):
    done = config("--bind", "::1")
    assert done.status == 0 and done.stderr == ""
    assert re.search(r"^server\.bind +::1 +flag --bind$", done.stdout, re.M)
    assert re.search(r"^server\.port +8002 +default$", done.stdout, re.M)
    assert re.search(r"^redis\.url +- +default$", done.stdout, re.M)


def test_data_lies_where_the_user_keeps_data(config):
    if os.geteuid() == 0:
        assert settings(config("--json"))["data_dir"] == ("/var/lib/retort", "default")
    else:
        assert settings(config("--json"))["data_dir"] == (f"{config.home}/.local/share/retort", "default")
    found = settings(config("--json", "--data-dir", "d"))
    assert found["data_dir"] == (f"{config.here}/d", "flag --data-dir")
    assert found["database.url"][0] == f"sqlite://{config.here}/d/retort.db"


def test_a_file_in_the_data_directory_is_found(config):
    (config.home / "retort.yaml").write_text("server.port: 9005\n")
    found = settings(config("--json", env={"RETORT_DATA_DIR": str(config.home)}))
    assert found["server.port"] == (9005, f"{config.home}/retort.yaml:1")


def test_a_file_can_be_named(config):
    (config.here / "other.yaml").write_text("server.port: 9006\n")
    assert settings(config("--json", "--config", "other.yaml"))["server.port"] == (9006, "other.yaml:1")
    assert settings(config("--json", env={"RETORT_CONFIG": "other.yaml"}))["server.port"][0] == 9006
    gone = config("--config", "gone.yaml")
    assert gone.status == 2 and "gone.yaml: No such file" in gone.stderr


# ---- errors ----

@pytest.mark.parametrize("yaml, why", [
    ("server:\n  prot: 1\n", "retort.yaml:2: unknown key 'server.prot'; did you mean server.port?"),
    ("server.port: x\n", "retort.yaml:1: server.port: 'x' is not a whole number from 0 to 65535"),
    ("execution.timeout: 1h\n", "retort.yaml:1: execution.timeout: '1h' is not a duration from 100ms to 5m"),
    ("server.allowed_hosts: [\n", "retort.yaml:2: did not find expected node content"),
])
def test_a_wrong_file_is_refused_with_its_line(config, yaml, why):
    done = config(yaml=yaml)
    assert (done.status, done.stdout, done.stderr) == (2, "", f"retort: {why}\n")


def test_a_wrong_variable_is_refused_and_an_unknown_one_warned_about(config):
    assert config(env={"RETORT_PORT": "x"}).status == 2
    done = config(env={"RETORT_PROT": "1"})
    assert done.status == 0
    assert done.stderr == ("retort: warning: environment RETORT_PROT: no setting is called RETORT_PROT; "
                           "did you mean RETORT_PORT?\n")


@pytest.mark.parametrize("args, why", [
    (["--prot", "1"], "unknown option --prot; did you mean --port?"),
    (["--port"], "flag --port needs a value"),
    (["--jsn"], "unknown option --jsn; --help lists them"),
    (["word"], "'word' is not expected; 'retort config --help'"),
])
def test_a_wrong_command_line_is_refused(config, args, why):
    done = config(*args)
    assert (done.status, done.stderr) == (2, f"retort: {why}\n")


def test_an_unreadable_file_is_an_error(config):
    (config.here / "retort.yaml").mkdir()
    assert config().status == 2


# ---- the names of older programs ----

def test_the_names_of_older_programs_work(config):
    found = settings(config("--json", env={
        "CODE_EXEC_HOST": "0.0.0.0", "CODE_EXEC_PORT": "8004", "CODE_EXEC_DEBUG": "true",
        "CODE_EXEC_MAX_EXECUTION_TIME": "20", "CODE_EXEC_REDIS_URL": "redis://localhost:6379/2",
        "SANDBOX_MAX_MEMORY_MB": "256", "USE_CODE_EXECUTION": "false", "ENABLE_COST_TRACKING": "0",
        "CAI_NO_PII_PROTECTION": "1", "PML_NO_CACHE": "1"}))
    values = {key: value for key, (value, source) in found.items() if source != "default"}
    assert values == {
        "server.bind": "0.0.0.0", "server.port": 8004, "debug": True, "log.level": "debug",
        "execution.timeout": "20s", "execution.memory": "256M", "execution.enabled": False,
        "redis.url": "redis://localhost:6379/2", "cost.enabled": False, "privacy.enabled": False,
        "cache.enabled": False}


def test_turning_protection_off_is_never_silent(config):
    done = config("--no-pii-protection", "--no-cache")
    assert "privacy.enabled is false (flag --no-pii-protection)" in done.stderr
    assert "cache.enabled is false (flag --no-cache)" in done.stderr


def test_secrets_are_not_shown(config):
    env = {"DB_HOST": "db", "DB_PASSWORD": "hunter2", "GEMINI_API_KEY": "hunter2",
           "RETORT_REDIS_URL": "redis://:hunter2@cache/1"}
    for args in ([], ["--json"]):
        done = config(*args, env=env)
        assert "hunter2" not in done.stdout + done.stderr
        assert "redis://:***@cache/1" in done.stdout and "postgresql://postgres:***@db:5432/retort" in done.stdout


# ---- what the table gives ----

def test_the_example_is_valid_as_it_is_and_with_every_line_in_force(config):
    example = config("--example").stdout
    assert config(yaml=example).stderr == ""
    before = settings(config("--json"))
    after = settings(config("--json", yaml=re.sub(r"#([a-z])", r"\1", example)))
    assert {key: value for key, (value, _) in before.items()} == {key: value for key, (value, _) in after.items()}


def test_help_names_every_key(config):
    done = config("--help")
    assert done.status == 0 and done.stdout.startswith("Usage: retort config")
    assert all(f"--{key}" in done.stdout for key in settings(config("--json")))


def test_the_page_shows_the_table_as_it_is(config):
    page = (ROOT / "docs/configuration.md").read_text()
    table = config("--markdown").stdout
    assert table in page, "put the output of 'retort config --markdown' into docs/configuration.md"
    assert page.endswith(table)


def test_the_yaml_of_the_page_is_valid(config):
    page = (ROOT / "docs/configuration.md").read_text()
    found = settings(config("--json", yaml=re.search(r"```yaml\n(.*?)```", page, re.S).group(1)))
    assert found["execution.max_memory"][0] == "8G"
    assert found["server.allowed_origins"] == (["https://studio.example"], "retort.yaml:3")


def test_every_line_of_the_template_is_known_and_valid(config):
    template = (ROOT / ".env.example").read_text()
    assert config(dotenv=template).status == 0
    every = re.sub(r"^#(?=[A-Z_]+=)", "", template, flags=re.M)
    found = config("--json", dotenv=every)
    assert all(w.endswith("has no effect in this version") for w in json.loads(found.stdout)["warnings"])
    lines = {n for n, line in enumerate(every.splitlines(), 1) if re.match(r"[A-Z_]+=.", line)}
    sources = {source for _, source in settings(found).values()}
    assert {f".env:{n}" for n in lines} <= sources, "a name in .env.example sets nothing"


@pytest.mark.parametrize("name", ["USE_CODE_EXECUTION", "GEMINI_API_KEY", "SANDBOX_TIMEOUT_SEC",
                                  "SANDBOX_MAX_MEMORY_MB", "ENABLE_PII_PROTECTION", "ENABLE_COST_TRACKING"])
def test_the_template_has_the_names_people_know(name):
    assert re.search(rf"^{name}=", (ROOT / ".env.example").read_text(), re.M)
