# SPDX-License-Identifier: Apache-2.0
"""Skills over the real server: the shapes of the Code Executor Service, the vectors of its built-in
skills, safety flags, registering, guides, and handlers that misbehave."""

import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

import pytest

from house import serve

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONG_TEXT = ("This is a long text that needs summarization. It contains multiple sentences. "
             "Each sentence provides different information. "
             "The summarization should extract the most important sentences. "
             "This helps reduce token count while preserving meaning.")
CONTACT = ("Contact John Doe at john@example.com or call +1-555-123-4567. "
           "Visit https://example.com for more information.")
ARTIFACTS = [
    {"id": "artifact_1", "type": "research_snippet",
     "content": {"text": "Sample research finding", "confidence": 0.9},
     "created_at": "2025-12-28T12:00:00Z"},
    {"id": "artifact_2", "type": "claim_verification",
     "content": {"claim_text": "Test claim", "verdict": "verified", "confidence": 0.95},
     "created_at": "2025-12-28T12:05:00Z"}]
ANY = {"type": "object"}


def write_skill(directory, name, code, output=None, file="handler.py", properties=None, **metadata):
    folder = pathlib.Path(directory) / name
    folder.mkdir(parents=True)
    short = pathlib.PurePath(name).name
    metadata = {"name": short, "version": "1.0.0", "description": "a test", "handler": "handler.run",
                **metadata}
    (folder / "skill.yaml").write_text("".join(f"{k}: {json.dumps(v)}\n" for k, v in metadata.items()))
    schema = {"input": {"type": "object", "properties": properties or {}}, "output": output or ANY}
    (folder / "schema.json").write_text(json.dumps(schema))
    (folder / file).write_text(textwrap.dedent(code))
    return folder


@pytest.fixture(scope="module")
def folder():
    """Where cells can reach it: pytest's own folders are closed to other users."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="retort-skills-"))
    os.chmod(place, 0o755)
    fill(place)
    yield place
    shutil.rmtree(place)


def fill(place):
    write_skill(place, "hangs", "def run():\n    while True: pass", limits={"timeout_seconds": 0.3})
    write_skill(place, "wrong", "def run():\n    return {'words': 'many'}",
                {"type": "object", "properties": {"words": {"type": "integer"}}})
    write_skill(place, "nothing", "def run():\n    pass")
    write_skill(place, "junk", "import sys\nprint('hello')\ndef run():\n    print('junk {')\n"
                               "    sys.stderr.write('more')\n    return {'ok': True}")
    write_skill(place, "leaks", "def run():\n    held = []\n    while True: held.append(bytearray(1 << 20))",
                limits={"max_memory_mb": 32})
    write_skill(place, "dies", "import os, signal\ndef run():\n    os.kill(os.getpid(), signal.SIGSEGV)")
    write_skill(place, "raises", "def run(number):\n    # a line\n    return {'n': 1 / number}")
    write_skill(place, "main_block", "def run():\n    return {'ok': True}\nif __name__ == '__main__':\n"
                                     "    raise SystemExit(3)")
    write_skill(place, "effect", "def run(x):\n    return {'x': x}", safety_flags=["side_effect"])
    write_skill(place, "asks", "def run():\n    return {}", requires_approval=True)
    write_skill(place, "outside", "def run():\n    return {}", safety_flags=["external_call"])
    write_skill(place, "networked", "def run():\n    return {}", safety_flags=["network_access"])
    write_skill(place, "reads", "def run(path):\n    return {'text': open(path).read()}",
                safety_flags=["file_system"])
    write_skill(place, "peeks", "def run(path):\n    return {'text': open(path).read()}")
    write_skill(place, "remembers", "count = 0\ndef run():\n    global count\n    count += 1\n"
                                    "    return {'count': count}")
    write_skill(place, "heavy", "import random\ntable = {i: str(i) for i in range(100000)}\ncount = 0\n"
                                "def run(fail=False):\n    global count\n    count += 1\n"
                                "    if fail: raise ValueError('no')\n"
                                "    return {'size': len(table), 'count': count, 'luck': random.random()}")
    write_skill(place, "in_js", "exports.run = async ({ a, b }) => ({ sum: a + b });", file="handler.js",
                properties={"b": {"type": "integer", "default": 5}})
    write_skill(place, "in_bash", "run() { RESULT=\"{\\\"twice\\\": $((INPUT_n * 2))}\"; }",
                file="handler.sh")
    write_skill(place, "group/deep/nested", "def run():\n    return {'deep': True}", tags=["deep"])
    write_skill(place, "calls_tools",
                "def run(text):\n    import __main__\n"
                "    answer = __main__.tools.call('skills:text_summarize', {'text': text, 'max_sentences': 1})\n"
                "    return {'short': answer['summary']}",
                safety_flags=["external_call"], tools=["skills:text_summarize"])
    write_skill(place, "calls_others",
                "def run():\n    import __main__\n"
                "    return __main__.tools.call('skills:extract_entities', {'text': 'x'})",
                safety_flags=["external_call"], tools=["skills:text_summarize"])
    write_skill(place, "keeps",
                "def run(text):\n    import __main__\n    call = __main__.tools.call\n"
                "    call('memory:commit', {'artifact': {'content': {'text': text}, 'session_id': 's-7'},\n"
                "                           'actor_id': 'keeps', 'actor_type': 'skill'})\n"
                "    found = call('memory:query', {'query_text': text, 'top_k': 1})\n"
                "    return {'found': found['items'][0]['content']['text']}",
                safety_flags=["external_call"], tools=["memory:*"])
    (place / "broken").mkdir()
    (place / "broken/skill.yaml").write_text("name: broken\nversion: one\n")
    guide = place / "writing-letters"
    (guide / "reference").mkdir(parents=True)
    (guide / "SKILL.md").write_text("---\nname: writing-letters\ndescription: How to write a letter.\n"
                                    "---\n\n# Letters\n\nSee reference/forms.md.\n")
    (guide / "reference/forms.md").write_text("Dear …")
    (guide / "link").symlink_to("/etc/passwd")
    shutil.copytree(ROOT / "examples/skills/sentiment", place / "sentiment")


@pytest.fixture(scope="module")
def server(folder):
    with serve("--skills-directory", folder, "--skills.allow_external",
               "calls_tools,calls_others,keeps") as one:
        one.folder = folder
        yield one


@pytest.fixture
def call(server):
    def call(skill, args=None, **members):
        reply = server.post("/skills/execute", {"skill": skill, "args": args or {}, **members})
        assert reply.status == 200, reply
        return reply.json
    return call


def error_of(answer):
    assert answer["success"] is False and answer["result"] is None
    assert answer["outputs_hash"] == "" and answer["provenance"]["skill_version"] == "unknown"
    assert answer["provenance"]["success"] is False
    return answer["provenance"]["error_message"]


def hash_of(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


# ---- the shapes ----

def test_root_and_health_count_the_skills(server):
    assert server.get("/").json["skills_loaded"] >= 4
    health = server.get("/health").json
    assert health["status"] == "healthy" and health["registry_loaded"] and health["executor_ready"]
    assert health["skills_count"] >= 4


def test_the_list_has_the_built_in_skills_and_filters(server):
    listed = server.get("/skills/list").json
    names = [skill["name"] for skill in listed["skills"]]
    assert listed["total"] == len(names) and names == sorted(names)
    assert {"text_summarize", "extract_entities", "embed_text", "compact_memory"} <= set(names)
    assert "nested" in names and "broken" not in names
    by_tag = server.get("/skills/list?tags=summarization&tags=deep").json["skills"]
    assert [skill["name"] for skill in by_tag] == ["nested", "text_summarize"]
    risky = server.get("/skills/list?safety_flag=pii_risk").json["skills"]
    assert [skill["name"] for skill in risky] == ["extract_entities"]
    assert server.get("/skills/list?safety_flag=maybe").status == 422


def test_a_skill_and_its_schema(server):
    skill = server.get("/skills/text_summarize").json
    assert skill["version"] == "1.0.0" and skill["safety_flags"] == ["none"]
    assert skill["handler_path"] == "handler.summarize" and skill["requires_approval"] is False
    schema = server.get("/skills/text_summarize/schema").json
    assert schema["skill_name"] == "text_summarize"
    assert schema["input_schema"]["required"] == ["text"] and "output_schema" in schema
    missing = server.get("/skills/nonexistent")
    assert missing.status == 404 and missing.json == {"detail": "Skill not found: nonexistent"}


def test_a_call_has_every_member(call):
    answer = call("text_summarize", {"text": LONG_TEXT, "max_sentences": 2, "style": "concise"},
                  actor_id="test_actor", actor_type="subagent", request_id="r-1", metadata={"a": 1})
    assert answer["success"] is True and answer["request_id"] == "r-1"
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
                        answer["execution_id"])
    provenance = answer["provenance"]
    assert provenance["skill_name"] == "text_summarize" and provenance["skill_version"] == "1.0.0"
    assert provenance["actor_id"] == "test_actor" and provenance["actor_type"] == "subagent"
    assert provenance["tool_ids"] == [] and provenance["execution_time_ms"] > 0
    assert provenance["error_message"] is None
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", provenance["timestamp"])
    messages = [log["message"] for log in answer["logs"]]
    assert messages[:5] == ["Validating inputs for text_summarize",
                            f"Input hash: {answer['inputs_hash'][:16]}...",
                            "Executing skill: text_summarize", "Validating outputs",
                            f"Output hash: {answer['outputs_hash'][:16]}..."]
    assert re.fullmatch(r"Execution completed in \d+\.\d\dms", messages[5])
    assert {log["level"] for log in answer["logs"]} == {"INFO"}


def test_a_request_that_makes_no_sense_is_422(server):
    for body in ({}, {"skill": "text_summarize"}, {"skill": 3, "args": {}},
                 {"skill": "x", "args": []}, b"{", b"[]"):
        reply = server.request("POST", "/skills/execute", body,
                               headers={"Content-Type": "application/json"})
        assert reply.status == 422 and reply.json["detail"][0]["msg"], reply


def test_wrong_arguments_fail_with_a_reason_and_a_record(call, server):
    answer = call("text_summarize", {"max_sentences": 5})
    assert error_of(answer).startswith("Input validation failed for text_summarize: ")
    assert [log["level"] for log in answer["logs"]] == ["INFO", "ERROR"]
    assert answer["inputs_hash"] == hash_of({"max_sentences": 5})
    record = server.get(f"/skills/provenance/{answer['execution_id']}").json
    assert record["success"] is False and record["skill_version"] == "1.0.0"
    for args in ({"text": "x", "max_sentences": 0}, {"text": "x", "max_sentences": 21},
                 {"text": "x" * 100001}, {"text": ""}, {"text": "x", "more": 1}):
        assert "validation" in error_of(call("text_summarize", args))


def test_an_unknown_skill_is_an_answer_with_a_record(call, server):
    answer = call("nonexistent_skill", {"test": "data"}, actor_id="somebody")
    assert error_of(answer) == "Skill not found: nonexistent_skill"
    record = server.get(f"/skills/provenance/{answer['execution_id']}").json
    assert record["skill_name"] == "nonexistent_skill" and record["inputs_hash"] == answer["inputs_hash"]


def test_provenance_is_found_by_execution_actor_and_skill(call, server):
    answer = call("sentiment", {"text": "I love it"}, actor_id="actor-7", actor_type="test")
    record = server.get(f"/skills/provenance/{answer['execution_id']}").json
    for member in ("execution_id", "skill_name", "skill_version", "actor_id", "actor_type",
                   "inputs_hash", "outputs_hash", "tool_ids", "success"):
        assert record[member] == answer["provenance"][member], member
    for query in ("actor_id=actor-7", "skill=sentiment", "skill=sentiment&actor_id=actor-7"):
        found = server.get(f"/skills/provenance?{query}&limit=5").json["provenance"]
        assert answer["execution_id"] in [link["execution_id"] for link in found], query
    assert server.get("/skills/provenance?actor_id=nobody-at-all").json["total"] == 0
    assert server.get("/skills/provenance/none").status == 404


# ---- the vectors ----

def test_summaries(call):
    args = {"text": LONG_TEXT, "max_sentences": 2, "style": "concise"}
    answer = call("text_summarize", args)
    assert answer["result"] == {
        "summary": "This is a long text that needs summarization. It contains multiple sentences.",
        "original_length": 242, "summary_length": 77, "compression_ratio": 0.318,
        "sentences_extracted": 2}
    assert answer["inputs_hash"] == "5fed949653ede11b27ac7bb8d0ac4da1a65c2cfa4d1e36dc7415e471ea98dbd8"
    assert answer["outputs_hash"] == "3c8c9c5cbc6ddb9e9b534d87d4a8e2c6b387e405177c2e1873b3350c90124d1f"
    for style, length, ratio in (("detailed", 76, 0.314), ("bullet-points", 80, 0.331)):
        result = call("text_summarize", {**args, "style": style})["result"]
        assert (result["summary_length"], result["compression_ratio"]) == (length, ratio)
    result = call("text_summarize", {"text": LONG_TEXT, "max_sentences": 1})["result"]
    assert not result["summary"].startswith(".") and result["summary"].endswith(".")
    result = call("text_summarize", {"text": LONG_TEXT, "max_sentences": 3})["result"]
    assert result["summary"].count(".") == 3


def test_equal_inputs_have_equal_hashes(call):
    args = {"text": "Test text for hashing", "max_sentences": 3, "style": "concise"}
    first, second = call("text_summarize", args), call("text_summarize", args)
    assert first["inputs_hash"] == second["inputs_hash"] == \
        "b1d40e608a76115b7d757a5c2227bf0e09ca8783c573cdf4a99fd55c5050df2a"
    assert first["outputs_hash"] == second["outputs_hash"] == \
        "d3ee8dedea96eb77e34197ae3516c16ec9ad8fafe358413fe267ce49fd756807"
    assert first["outputs_hash"] == hash_of(first["result"])
    exotic = call("text_summarize", {"text": "Grüße 😀. Zwei! Drei? Vier."})
    assert exotic["inputs_hash"] == hash_of({"text": "Grüße 😀. Zwei! Drei? Vier."})


def test_entities(call, server):
    answer = call("extract_entities", {"text": CONTACT, "entity_types": ["EMAIL", "PHONE", "URL"],
                                       "min_confidence": 0.5})
    assert [(e["text"], e["start_pos"], e["end_pos"]) for e in answer["result"]["entities"]] == [
        ("john@example.com", 20, 36), ("1-555-123-4567", 46, 60), ("https://example.com", 68, 87)]
    assert answer["result"]["total_entities"] == 3
    everything = call("extract_entities", {"text": CONTACT})["result"]
    assert everything["entities"][0] == {"text": "Contact John Doe", "type": "PERSON",
                                         "confidence": 0.6, "start_pos": 0, "end_pos": 16}
    sure = call("extract_entities", {"text": CONTACT, "min_confidence": 0.65})["result"]
    assert set(sure["entity_counts"]) == {"EMAIL", "PHONE", "URL"}
    record = server.get(f"/v1/executions/{answer['execution_id']}").json
    assert record["pii"]["in_input"] and record["pii"]["in_output"] and not record["pii"]["masked"]


def test_entities_of_every_kind_at_code_points(call):
    text = ("😀 Dr. Ann Lee of Acme Widgets Inc. paid $1,234.50 on January 5, 2025 and 2025-01-06 in "
            "Santa Fe, NM, not EUR 20.")
    found = call("extract_entities", {"text": text})["result"]
    assert all(text[e["start_pos"]:e["end_pos"]] == e["text"] for e in found["entities"])
    texts = {e["type"]: [] for e in found["entities"]}
    for entity in found["entities"]:
        texts[entity["type"]].append(entity["text"])
    assert "Dr. Ann Lee" in texts["PERSON"] and texts["LOCATION"] == ["Santa Fe, NM"]
    assert texts["MONEY"] == ["$1,234.50", "EUR 20"] and "Acme Widgets Inc." in texts["ORGANIZATION"]
    assert texts["DATE"] == ["January 5, 2025", "2025-01-06"]
    starts = [e["start_pos"] for e in found["entities"]]
    assert starts == sorted(starts)


def test_embeddings(call):
    text = "This is a test sentence for embedding generation."
    result = call("embed_text", {"text": text, "model": "all-MiniLM-L6-v2", "normalize": True})["result"]
    assert [round(number, 6) for number in result["embedding"][:4]] == [
        0.018792, 0.045385, 0.041839, 0.041484]
    assert result["dimension"] == len(result["embedding"]) == 384 and result["text_length"] == len(text)
    assert math.isclose(sum(n * n for n in result["embedding"]), 1, rel_tol=1e-9)
    assert result["model_used"] == "hash-embedder:all-MiniLM-L6-v2"
    assert call("embed_text", {"text": "x", "model": "all-mpnet-base-v2"})["result"]["dimension"] == 768


def test_compaction(call):
    expected = {"summarize": (118, 1.439, ["artifact_1", "artifact_2"]),
                "truncate": (82, 1.0, ["artifact_2", "artifact_1"]),
                "intelligent": (82, 1.0, ["artifact_2", "artifact_1"])}
    for strategy, (tokens, ratio, order) in expected.items():
        result = call("compact_memory", {"artifacts": ARTIFACTS, "strategy": strategy,
                                         "max_tokens": 1000})["result"]
        assert result["original_count"] == 2 and result["original_tokens_estimate"] == 82
        assert (result["compacted_tokens_estimate"], result["compression_ratio"]) == (tokens, ratio)
        assert result["preserved_artifact_ids"] == order and result["strategy_used"] == strategy
    merged = call("compact_memory", {"artifacts": [ARTIFACTS[0], {**ARTIFACTS[0], "id": "b"}],
                                     "strategy": "merge"})
    assert merged["outputs_hash"] == call("compact_memory", {
        "artifacts": [ARTIFACTS[0], {**ARTIFACTS[0], "id": "b"}], "strategy": "merge"})["outputs_hash"]
    one, = merged["result"]["compacted_artifacts"]
    assert one["id"] == "merged_research_snippet" and one["merged_from"] == ["artifact_1", "b"]
    assert one["aggregated_content"]["common_fields"] == ["confidence", "text"]


def test_compaction_stays_within_its_tokens(call):
    many = [{"id": f"a{i}", "type": "note", "content": {"text": "word " * 60, "n": i},
             "created_at": f"2025-01-{i + 1:02}"} for i in range(20)]
    for strategy in ("truncate", "intelligent"):
        result = call("compact_memory", {"artifacts": many, "strategy": strategy, "max_tokens": 300})
        assert 0 < result["result"]["compacted_tokens_estimate"] <= 300
    for artifact in call("compact_memory", {"artifacts": many, "preserve_fields": ["id"]})[
            "result"]["compacted_artifacts"]:
        assert set(artifact) == {"id", "content_summary", "compacted", "original_size"}


# ---- languages, nesting, isolation ----

def test_handlers_in_three_languages_with_defaults(call):
    assert call("in_js", {"a": 2})["result"] == {"sum": 7}
    assert call("in_js", {"a": 2, "b": 1})["result"] == {"sum": 3}
    assert call("in_bash", {"n": 21})["result"] == {"twice": 42}
    assert call("nested")["result"] == {"deep": True}
    assert call("main_block")["result"] == {"ok": True}


def test_calls_do_not_share_state(call):
    for _ in range(3):
        assert call("remembers")["result"] == {"count": 1}


def test_a_handler_that_loads_slowly_is_loaded_once_and_copied(call):
    """The first call finds out, the second makes the template, the others get copies of it."""
    results = [call("heavy")["result"] for _ in range(4)]
    assert all(result["size"] == 100000 and result["count"] == 1 for result in results)
    assert len({result["luck"] for result in results}) == 4, "copies must not share their chance"
    assert error_of(call("heavy", {"fail": True})).endswith("ValueError: no (line 7)")


def test_the_sample_skill(call):
    assert call("sentiment", {"text": "I love this, it is great."})["result"] == {
        "sentiment": "positive", "polarity": 1.0, "confidence": 0.5, "word_count": 6}
    assert call("sentiment", {"text": "not good"})["result"]["sentiment"] == "negative"


# ---- misbehaviour ----

@pytest.mark.parametrize("skill, args, reason", [
    ("hangs", {}, r"Execution exceeded timeout of 0\.3s"),
    ("wrong", {}, r"Output validation failed for wrong: /words must be .*"),
    ("nothing", {}, r"Output validation failed for nothing: .*"),
    ("leaks", {}, r"Handler execution failed: .*Memory limit of 32MB exceeded.*"),
    ("dies", {}, r"Handler execution failed: RuntimeError: the code was ended by signal 11.*"),
    ("raises", {"number": 0}, r"Handler execution failed: ZeroDivisionError: .* \(line 3\)"),
    ("raises", {"wrong": 0}, r"Handler execution failed: TypeError: .*"),
])
def test_a_handler_that_misbehaves_fails_alone(call, server, skill, args, reason):
    answer = call(skill, args)
    assert re.fullmatch(reason, error_of(answer)), answer["provenance"]
    record = server.get(f"/skills/provenance/{answer['execution_id']}").json
    assert record["success"] is False and record["skill_name"] == skill
    assert call("sentiment", {"text": "fine"})["success"]


def test_junk_on_stdout_is_no_answer(call):
    answer = call("junk")
    assert answer["result"] == {"ok": True}
    context, = (log["context"] for log in answer["logs"] if log["message"] == "Handler output")
    assert context == {"stdout": "hello\njunk {\n", "stderr": "more"}


def test_a_skill_that_is_broken_is_named_with_its_reason(server):
    problems = server.get("/skills/problems").json["problems"]
    reasons = {pathlib.Path(p["folder"]).name: p["reason"] for p in problems}
    assert reasons["broken"] == \
        "skill.yaml: 'version' must be three numbers such as 1.0.0, in quotes if need be"
    assert re.search(r"a skill is left out: .*/broken: skill.yaml", server.log_text())


def test_folders_are_read_again(server, call):
    assert "not found" in error_of(call("late"))
    folder = write_skill(server.folder, "late", "def run():\n    return {'v': 1}")
    assert call("late")["result"] == {"v": 1}
    (folder / "handler.py").write_text("def run():\n    return {'version': 2}")
    server.get("/skills/list")
    assert call("late")["result"] == {"version": 2}
    shutil.rmtree(folder)
    assert "late" not in [s["name"] for s in server.get("/skills/list").json["skills"]]


# ---- safety flags ----

def approve(server, approval_id):
    reply = server.post(f"/v1/approvals/{approval_id}/approve", {"comment": "fine"})
    assert reply.status == 200, reply


def test_side_effects_wait_for_a_word(server, call):
    first = call("effect", {"x": 1})
    assert "requires approval" in error_of(first)
    assert "WARNING" in [log["level"] for log in first["logs"]]
    approval = first["approval_id"]
    assert approval in error_of(first)
    assert "pending, not approved" in error_of(call("effect", {"x": 1}, approval_id=approval))
    approve(server, approval)
    assert "for something else" in error_of(call("effect", {"x": 2}, approval_id=approval))
    assert call("effect", {"x": 1}, approval_id=approval)["result"] == {"x": 1}
    assert "used before" in error_of(call("effect", {"x": 1}, approval_id=approval))
    assert "requires approval" in error_of(call("asks"))
    assert "no approval" in error_of(call("asks", approval_id="appr_nope"))


def test_external_calls_and_network_need_the_operator(call):
    assert "skills.allow_external: [outside]" in error_of(call("outside"))
    assert "network_access" in error_of(call("networked"))


def test_only_file_system_skills_read_files(server, call):
    secret = server.folder / "reads/schema.json"
    assert json.loads(call("reads", {"path": str(secret)})["result"]["text"])["output"] == ANY
    assert "FileNotFoundError" in error_of(call("reads", {"path": str(server.folder / "peeks/schema.json")}))
    assert "FileNotFoundError" in error_of(call("peeks", {"path": str(secret)}))


def test_masking_is_the_callers_to_ask(call, server):
    answer = call("extract_entities", {"text": "Write to john@example.com"}, privacy="redact")
    assert "john@" not in json.dumps(answer["result"])
    assert server.get(f"/v1/executions/{answer['execution_id']}").json["pii"]["masked"]


def test_a_skill_calls_the_tools_it_names_and_no_others(call):
    answer = call("calls_tools", {"text": "One thing here. Another. Third."})
    assert answer["result"] == {"short": "One thing here."}, answer
    assert answer["provenance"]["tool_ids"] == ["skills:text_summarize"]
    assert "skills:extract_entities" in error_of(call("calls_others"))


def test_code_calls_skills_as_tools(server):
    answer = server.run("return tools.call('skills:text_summarize', {'text': 'One. Two. Three.', "
                        "'max_sentences': 1})['sentences_extracted']")
    assert answer["result"] == 1, answer


# ---- registering ----

def registration(**members):
    return {"name": "twice", "version": "1.0.0", "description": "Doubles a number.",
            "safety_flags": ["none"], "requires_approval": False, "tags": ["math"],
            "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}},
                             "required": ["n"]},
            "output_schema": {"type": "object", "required": ["n"]},
            "handler_path": "handler.py:double",
            "handler_code": "def double(n):\n    return {'n': n * 2}", **members}


def test_a_registered_skill_has_versions(server, call):
    """That they outlive the server is a unit test's business (skill_rows)."""
    made = server.post("/skills/register", registration())
    assert made.status == 201 and made.json["source"] == "registered", made
    assert call("twice", {"n": 4})["result"] == {"n": 8}
    again = server.post("/skills/register", registration())
    assert again.status == 409 and "exists already" in again.json["detail"]
    newer = registration(version="1.10.0", handler_code="def double(n):\n    return {'n': n + n + 1}")
    assert server.post("/skills/register", newer).status == 201
    assert server.post("/skills/register", registration(version="1.9.0")).status == 201
    assert call("twice@1.0.0", {"n": 4})["result"] == {"n": 8}
    assert server.get("/skills/twice").json["version"] == "1.10.0"
    assert call("twice", {"n": 4})["result"] == {"n": 9}
    assert server.get("/skills/list?tags=math").json["skills"][0]["version"] == "1.10.0"


@pytest.mark.parametrize("members, text", [
    ({"name": "a b"}, "'name'"), ({"name": "list"}, "API's own"), ({"version": "1.0"}, "three numbers"),
    ({"safety_flags": ["dangerous"]}, "unknown safety flag"), ({"input_schema": None}, "input schema"),
    ({"output_schema": {"type": "nonsense"}}, "output schema"), ({"handler_code": ""}, "is empty"),
    ({"handler_path": "handler.py:other"}, "no function 'other'"),
    ({"saftey_flags": []}, "did you mean safety_flags"),
    ({"handler_code": None, "handler_path": "../../etc/passwd"}, "handler"),
])
def test_a_registration_that_cannot_work_is_refused(server, members, text):
    reply = server.post("/skills/register", registration(**members))
    assert reply.status == 422 and text in reply.text, reply


def test_a_registration_may_take_a_file_of_a_folder(server):
    reply = server.post("/skills/register", registration(
        name="mood", handler_code=None, handler_path="sentiment/handler.py:analyze",
        input_schema=ANY, output_schema=ANY))
    assert reply.status == 201, reply
    answer = server.post("/skills/execute", {"skill": "mood", "args": {"text": "nice"}}).json
    assert answer["result"]["sentiment"] == "positive"


# ---- guides ----

def test_guides_are_shown_step_by_step(server):
    assert server.get("/skills/guides").json["guides"] == [
        {"name": "writing-letters", "description": "How to write a letter."}]
    guide = server.get("/skills/guides/writing-letters").json
    assert guide["body"].startswith("\n# Letters") and guide["files"] == ["reference/forms.md"]
    file = server.get("/skills/guides/writing-letters/files/reference/forms.md")
    assert file.text == "Dear …"
    for path in ("link", "../broken/skill.yaml", "%2e%2e/broken/skill.yaml", "/etc/passwd", "reference",
                 "reference/../../broken/skill.yaml", ".hidden"):
        assert server.get(f"/skills/guides/writing-letters/files/{path}").status in (400, 404, 422), path


# ---- memory ----

def commit(server, text, **members):
    artifact = {"content": {"text": text}, **members}
    reply = server.post("/memory/commit", {"artifact": artifact, "actor_id": "agent-1",
                                           "actor_type": "subagent", "tool_ids": ["web:search"]})
    assert reply.status == 201, reply
    return reply.json


def test_artifacts_are_kept_and_found_by_meaning(server):
    cat = commit(server, "The cat sleeps on the sofa", session_id="s-1", artifact_type="research_snippet")
    commit(server, "Interest rates were raised by the central bank", session_id="s-1")
    assert cat["memory_id"] == cat["artifact_id"] and cat["embedding_generated"]
    found = server.post("/memory/query", {"query_text": "a kitten sleeping on a couch",
                                          "filter_session_id": "s-1"}).json
    assert found["items"][0]["content"] == {"text": "The cat sleeps on the sofa"}
    assert found["items"][0]["created_by"] == "agent-1" and found["total_candidates"] >= 1
    only = server.post("/memory/query", {"query_text": "cat", "filter_artifact_type": "code_patch"}).json
    assert only["items"] == []
    stats = server.get("/memory/session/s-1/stats").json
    assert stats["artifact_count"] == 2 and stats["artifacts_by_type"] == {
        "research_snippet": 1, "generic": 1}
    for body in ({}, {"artifact": {"content": {}}, "actor_id": "a", "actor_type": "b"}):
        assert server.post("/memory/commit", body).status == 422
    assert server.post("/memory/query", {}).status == 422


def test_the_origin_of_an_artifact_is_told_also_when_its_parents_are_gone(server):
    first = commit(server, "raw words " * 900, id="raw", session_id="s-2")["artifact_id"]
    second = commit(server, "claim", id="claim", session_id="s-2", parent_artifact_ids=[first])["artifact_id"]
    chain = server.get(f"/memory/provenance/{second}").json
    assert [link["artifact_id"] for link in chain["chain"]] == [second, first]
    assert chain["depth"] == 2 and chain["root_artifacts"] == [first]
    assert chain["chain"][1]["outputs_hash"] == hash_of({"text": "raw words " * 900})
    done = server.post("/memory/compact", {"session_id": "s-2", "strategy": "truncate",
                                           "target_tokens": 1000}).json
    assert done["artifacts_removed"] == 1 and done["tokens_after"] <= 1000 < done["tokens_before"]
    assert server.get(f"/memory/provenance/{second}").json["depth"] == 2
    assert server.get("/memory/provenance/nothing").status == 404
    assert server.post("/memory/commit", {"artifact": {"id": "raw", "content": {"a": 1}}, "actor_id": "a",
                                          "actor_type": "b"}).status == 409


def test_a_session_is_summarized_by_the_skill(server):
    for i in range(3):
        commit(server, f"Fact {i} about whales. " + "They sing. They dive. " * 90, session_id="s-3")
    done = server.post("/memory/compact", {"session_id": "s-3", "target_tokens": 1000}).json
    assert done["strategy_used"] == "summarize" and done["artifacts_compacted"] == 3
    assert done["tokens_after"] < done["tokens_before"]
    chain = server.get(f"/memory/provenance/{done['summary_artifact_id']}").json
    assert chain["depth"] == 4 and chain["chain"][0]["tool_ids"] == ["skills:text_summarize"]


def test_a_skill_keeps_and_finds(call):
    answer = call("keeps", {"text": "A violin has four strings"})
    assert answer["result"] == {"found": "A violin has four strings"}, answer
    assert answer["provenance"]["tool_ids"] == ["memory:commit", "memory:query"]


# ---- the examples of the source document, as written but for the port ----

def test_the_curl_example(server):
    command = r"""curl -s -X POST http://localhost:8002/skills/execute \
  -H "Content-Type: application/json" \
  -d '{
    "skill": "extract_entities",
    "args": {
      "text": "Contact John Doe at john@example.com",
      "entity_types": ["EMAIL", "PERSON"]
    }
  }'""".replace("8002", str(server.port))
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, check=True)
    assert {e["type"] for e in json.loads(done.stdout)["result"]["entities"]} == {"EMAIL", "PERSON"}


def test_the_python_example(server):
    """The source document's, inside a function because it awaits."""
    pytest.importorskip("httpx")
    program = """
import httpx, asyncio

async def main():
    async with httpx.AsyncClient() as client:
        response = await client.post(
            "http://localhost:8002/skills/execute",
            json={
                "skill": "text_summarize",
                "args": {
                    "text": "Long text to summarize...",
                    "max_sentences": 3,
                },
                "actor_id": "agent_001",
                "actor_type": "subagent",
            },
        )

        result = response.json()
        print(result["result"]["summary"])
        print(f"Provenance: {result['provenance']['inputs_hash']}")

asyncio.run(main())
""".replace("8002", str(server.port))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    expected = hash_of({"text": "Long text to summarize...", "max_sentences": 3})
    assert done.stdout == f"Long text to summarize...\nProvenance: {expected}\n", done.stderr


def test_the_five_steps_of_extending(tmp_path, retort):
    made = retort("skills", "new", "my_skill", "--in", tmp_path)
    assert made.status == 0, made.stderr
    assert sorted(p.name for p in (tmp_path / "my_skill").iterdir()) == [
        "handler.py", "schema.json", "skill.yaml"]
    env = {"HOME": str(tmp_path), "CODE_EXEC_SKILLS_DIRECTORY": str(tmp_path)}
    ran = retort("skills", "run", "my_skill", '{"text": "one two three"}', "--data-dir",
                 tmp_path / "data", env=env)
    assert ran.status == 0 and json.loads(ran.stdout) == {"words": 3}, ran
    listed = retort("skills", "list", "--data-dir", tmp_path / "data", env=env)
    assert "my_skill" in listed.stdout and "text_summarize" in listed.stdout
    failed = retort("skills", "run", "my_skill", "{}", "--data-dir", tmp_path / "data", env=env)
    assert failed.status == 1 and "Input validation failed for my_skill" in failed.stderr
    assert retort("skills", "new", "my_skill", "--in", tmp_path).status != 0
