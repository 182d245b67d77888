# SPDX-License-Identifier: Apache-2.0
"""retort privacy scan and mask, as a caller uses them."""

import json

FIXTURE = ("Contact Alice at alice@example.com or call 555-123-4567. Her SSN is 123-45-6789 and card number is "
           "4532015112830366. API Key: sk_test_abcdefghijklmnopqrstuvwxyz123456")


def test_scan_of_text_answers_one_line_with_positions_in_code_points(retort):
    done = retort("privacy", "scan", stdin="größe 🎈 ann@x.org\n".encode())
    assert done.status == 0 and done.stdout.count("\n") == 1
    assert json.loads(done.stdout) == {"spans": [{"start": 8, "end": 17, "type": "EMAIL", "score": 0.95}]}


def test_scan_of_lines_answers_each(retort):
    lines = "".join(json.dumps({"text": t}) + "\n" for t in ("nothing", "ann@x.org", "é 192.168.1.10"))
    answers = [json.loads(line)["spans"] for line in
               retort("privacy", "scan", "--jsonl", stdin=lines.encode()).stdout.splitlines()]
    assert [[s["type"] for s in spans] for spans in answers] == [[], ["EMAIL"], ["IP"]]
    assert (answers[2][0]["start"], answers[2][0]["end"]) == (2, 14)


def test_types_can_be_chosen(retort):
    done = retort("privacy", "scan", "--types", "PHONE,ssn", stdin=FIXTURE.encode())
    assert [s["type"] for s in json.loads(done.stdout)["spans"]] == ["PHONE", "SSN"]
    assert retort("privacy", "scan", "--types", "SHOES", stdin=b"").status == 2


def test_own_patterns_are_reported_by_their_name(retort):
    done = retort("privacy", "scan", "--pattern", r"BADGE=B-\d{4}", stdin=b"badge B-1234")
    assert [s["type"] for s in json.loads(done.stdout)["spans"]] == ["BADGE"]


def test_masking_with_tokens_and_for_good(retort):
    tokens = retort("privacy", "mask", "--mode", "tokens", stdin=FIXTURE.encode()).stdout
    assert tokens == ("Contact Alice at [EMAIL_1] or call [PHONE_1]. Her SSN is [SSN_1] and card number is "
                      "[CARD_1]. API Key: [APIKEY_1]")
    redacted = retort("privacy", "mask", stdin=FIXTURE.encode()).stdout
    assert "[EMAIL_REDACTED]" in redacted and "[CREDITCARD_REDACTED]" in redacted


def test_masking_json_keeps_its_structure_and_its_numbers(retort):
    line = '{"a":{"mail":["ann@x.org",1.50,null]},"n":12345678901234567890,"ann@x.org":true}'
    done = retort("privacy", "mask", "--jsonl", stdin=line.encode())
    assert done.stdout == line.replace('["ann@x.org"', '["[EMAIL_REDACTED]"') + "\n"
    done = retort("privacy", "mask", "--jsonl", "--keys", stdin=line.encode())
    assert "ann@x.org" not in done.stdout


def test_a_bad_line_is_named(retort):
    done = retort("privacy", "scan", "--jsonl", stdin=b'{"text":"a"}\n{"txt":1}\n')
    assert done.status == 2 and "line 2" in done.stderr
    assert retort("privacy", "scan", "--jsonl", stdin=b"{").status == 2


def test_usage(retort):
    assert retort("privacy", "--help").stdout.startswith("Usage: retort privacy")
    assert retort("privacy").status == 2
    assert retort("privacy", "scan", "--nonsense", stdin=b"").status == 2
