# SPDX-License-Identifier: Apache-2.0
"""Product events reach PostHog's batch endpoint in its shape, and say nothing about a person."""

import datetime
import json
import uuid

from receivers import answer


def parsed(moment):
    return datetime.datetime.fromisoformat(moment.replace("Z", "+00:00"))


def test_a_batch_has_the_shape_posthog_reads(drive, stand_in):
    server = stand_in(answer(200, '{"status":"Ok"}'))
    driven = drive(posthog_url=server.root + "/", posthog_key="phc_x", events=2, delay=50, wait=1)
    events = []
    for request in server.requests:
        body = json.loads(request.body)
        assert request.path == "/batch/" and request.headers["Content-Type"] == "application/json"
        assert set(body) == {"api_key", "batch", "sent_at", "historical_migration"}
        assert (body["api_key"], body["historical_migration"]) == ("phc_x", False)
        events += body["batch"]
    assert len(events) == 2
    for event in events:
        assert set(event) == {"event", "distinct_id", "properties", "timestamp", "uuid"}
        assert (event["event"], event["distinct_id"]) == ("code_executed", "org-1")
        assert parsed(event["timestamp"]) <= parsed(body["sent_at"])
        assert uuid.UUID(event["uuid"]).version == 4
    assert events[0]["uuid"] != events[1]["uuid"]
    assert driven.sent("events") == 2


def test_an_event_makes_no_profile_and_no_place_whatever_its_properties_say(drive, stand_in):
    server = stand_in(answer(200))
    drive(posthog_url=server.root, posthog_key="phc_x", events=1)
    text = server.requests[0].body.decode()
    [event] = json.loads(text)["batch"]
    version = event["properties"].pop("$lib_version")
    assert event["properties"] == {"language": "python", "success": True, "durationMs": 12,
                                   "$lib": "retort", "$is_server": True,
                                   "$process_person_profile": False, "$geoip_disable": True}
    assert version and text.count("$geoip_disable") == 1


def test_an_event_that_is_no_json_does_not_spoil_the_others(drive, stand_in):
    server = stand_in(answer(200))
    driven = drive(posthog_url=server.root, posthog_key="phc_x", events=1, broken=2, delay=50, wait=1)
    assert sum(len(json.loads(r.body)["batch"]) for r in server.requests) == 1
    assert (driven.sent("events"), driven.dropped("events")) == (1, {"invalid": 2})


def test_a_busy_posthog_is_asked_again_with_the_same_events(drive, stand_in):
    server = stand_in(answer(503), answer(200))
    driven = drive(posthog_url=server.root, posthog_key="phc_x", events=1, delay=20, wait=1)
    first, second = server.requests
    assert first.body == second.body
    assert driven.sent("events") == 1


def test_a_key_it_does_not_like_is_told(drive, stand_in):
    server = stand_in(answer(401))
    driven = drive(posthog_url=server.root, posthog_key="x", events=1, delay=20, wait=1)
    assert driven.dropped("events") == {"refused": 1}
    assert driven.warnings == ["telemetry: events are dropped: the receiver answers 401"]


def test_without_a_key_nothing_is_sent(drive, stand_in):
    server = stand_in(answer(200))
    drive(posthog_url=server.root, events=1)
    assert server.requests == []
