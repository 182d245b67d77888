# SPDX-License-Identifier: Apache-2.0
"""What is sent again, what is dropped, and what is counted, when receivers are slow, full or gone."""

import email.utils
import socket
import time

import pytest
from receivers import answer, hang, lose


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_receiver_that_is_busy_is_asked_again(drive, stand_in, status):
    server = stand_in(answer(status), answer(200))
    driven = drive(url=server.url, spans=1, delay=20, wait=1)
    first, second = server.requests
    assert first.body == second.body
    assert 0.2 < second.at - first.at < 2
    assert (driven.sent(), driven.dropped(), driven.warnings) == (2, {}, [])


def test_retry_after_is_honoured_in_seconds(drive, stand_in):
    server = stand_in(answer(503, Retry_After="2"), answer(200))
    driven = drive(url=server.url, spans=1, delay=20, wait=1)
    first, second = server.requests
    assert 1.9 < second.at - first.at < 4
    assert driven.sent() == 2


def test_retry_after_is_honoured_as_a_date(drive, stand_in):
    when = email.utils.formatdate(time.time() + 3, usegmt=True)
    server = stand_in(answer(429, Retry_After=when), answer(200))
    drive(url=server.url, spans=1, delay=20, wait=1)
    first, second = server.requests
    assert 1 < second.at - first.at < 6


@pytest.mark.parametrize("status", [301, 400, 401, 404, 413, 500, 501])
def test_a_receiver_that_refuses_is_not_asked_again(drive, stand_in, status):
    elsewhere = stand_in(answer(200))
    server = stand_in(answer(status, Location=elsewhere.url))
    driven = drive(url=server.url, spans=1, delay=20, wait=1)
    assert len(server.requests) == 1 and elsewhere.requests == []
    assert (driven.sent(), driven.dropped()) == (0, {"refused": 2})
    assert driven.warnings == [f"telemetry: spans are dropped: the receiver answers {status}"]


def test_a_lost_connection_is_made_again(drive, stand_in):
    server = stand_in(lose, lose, answer(200))
    driven = drive(url=server.url, spans=1, delay=20, wait=1)
    assert len(server.requests) == 3
    assert (driven.sent(), driven.dropped()) == (2, {})


def test_a_receiver_that_never_answers_is_not_asked_again(drive, stand_in):
    server = stand_in(hang)
    driven = drive(url=server.url, spans=1, delay=20, timeout=300, wait=1)
    assert len(server.requests) == 1
    assert driven.dropped() == {"refused": 2}
    assert "timed out" in driven.warnings[0]


def test_a_receiver_that_stays_busy_is_given_up(drive, stand_in):
    server = stand_in(answer(503, Retry_After="1"))
    driven = drive(url=server.url, spans=1, delay=20, wait=1)
    assert len(server.requests) == 6
    assert driven.dropped() == {"unavailable": 2}


def test_partial_success_is_success(drive, stand_in):
    server = stand_in(answer(200, '{"partialSuccess":{"rejectedSpans":"1","errorMessage":"why"}}'))
    driven = drive(url=server.url, spans=1, delay=20, wait=1)
    assert len(server.requests) == 1
    assert (driven.sent(), driven.dropped()) == (1, {"rejected": 1})


def test_an_endless_answer_is_not_kept(drive, stand_in):
    server = stand_in(answer(200, "x" * 5_000_000))
    driven = drive(url=server.url, spans=1, delay=20, wait=1)
    assert driven.sent() == 2


def test_the_beginning_and_the_end_of_trouble_are_told(drive, stand_in):
    server = stand_in(answer(400), answer(400), answer(200))
    driven = drive(url=server.url, spans=1, delay=20, rounds=4, wait=1)
    assert driven.warnings == ["telemetry: spans are dropped: the receiver answers 400",
                               "telemetry: spans are sent again"]
    assert driven.sent() + sum(driven.dropped().values()) == 8


def test_a_connection_is_used_again(drive, stand_in):
    server = stand_in(answer(200))
    drive(url=server.url, spans=1, delay=20, rounds=3, wait=1)
    assert len(server.requests) >= 3
    assert server.connections == 1


# ---- the end ----

def test_the_end_sends_what_waits(drive, stand_in):
    server = stand_in(answer(200))
    driven = drive(url=server.url, posthog_url=server.root, posthog_key="phc_x", spans=1, events=1,
                   delay=60000)
    assert sorted(r.path for r in server.requests) == ["/batch/", "/v1/traces"]
    assert driven.close_ms < 2000


def test_the_end_does_not_wait_for_a_receiver_that_hangs(drive, stand_in):
    server = stand_in(hang)
    driven = drive(url=server.url, posthog_url=server.root, posthog_key="phc_x", spans=3000, events=300)
    assert driven.close_ms <= 5000


def test_the_end_does_not_wait_for_a_receiver_that_is_gone(drive):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        driven = drive(url=f"http://127.0.0.1:{nobody.getsockname()[1]}/", spans=1500)
    assert driven.close_ms <= 5000


def test_the_end_does_not_wait_for_a_time_after_it(drive, stand_in):
    server = stand_in(answer(503, Retry_After="30"))
    driven = drive(url=server.url, spans=1)
    assert driven.close_ms < 1000
    assert len(server.requests) == 1


# ---- TLS ----

def test_a_certificate_of_a_known_authority_is_trusted(drive, stand_in, tls, certificates):
    server = stand_in(answer(200), tls=tls)
    driven = drive(url=server.url, certificate=certificates / "ca.crt", spans=1, delay=20, wait=1)
    assert driven.sent() == 2


def test_a_certificate_of_an_unknown_authority_is_not(drive, stand_in, tls):
    server = stand_in(answer(200), tls=tls)
    driven = drive(url=server.url, spans=1, delay=20, wait=1)
    assert driven.dropped() == {"refused": 2} and server.requests == []
    assert "certificate" in driven.warnings[0]


def test_a_receiver_can_ask_who_we_are(drive, stand_in, tls, certificates):
    tls.verify_mode = 2  # CERT_REQUIRED
    server = stand_in(answer(200), tls=tls)
    driven = drive(url=server.url, certificate=certificates / "ca.crt",
                   client_key=certificates / "client.key",
                   client_certificate=certificates / "client.crt", spans=1, delay=20, wait=1)
    assert driven.sent() == 2


def test_the_environment_says_it_all(drive, stand_in, tls, certificates):
    tls.verify_mode = 2
    server = stand_in(answer(200), tls=tls)
    driven = drive(env={"OTEL_EXPORTER_OTLP_ENDPOINT": server.root + "/otlp/",
                        "OTEL_EXPORTER_OTLP_CERTIFICATE": str(certificates / "ca.crt"),
                        "OTEL_EXPORTER_OTLP_CLIENT_KEY": str(certificates / "client.key"),
                        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": str(certificates / "client.crt"),
                        "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "authorization=Bearer%20x,x-empty=",
                        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                        "OTEL_BSP_SCHEDULE_DELAY": "20"}, spans=1, wait=1)
    [request] = server.requests
    assert request.path == "/otlp/v1/traces"
    assert (request.headers["Authorization"], request.headers["X-Empty"]) == ("Bearer x", "")
    assert driven.warnings == ["OTEL_EXPORTER_OTLP_PROTOCOL is ignored: 'grpc' is not supported, only "
                               "http/json"]
    assert driven.sent() == 2


# ---- the text of the metrics ----

def test_prometheus_reads_the_metrics(drive):
    driven = drive(spans=1)
    assert driven.metrics[("retort_sessions",)] == 0
    assert driven.metrics[("retort_queue_wait_seconds_bucket", "+Inf")] == 0
    assert driven.metrics[("retort_queue_wait_seconds_count",)] == 0
