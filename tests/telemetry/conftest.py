# SPDX-License-Identifier: Apache-2.0
"""Drives src/telemetry through driver.c against receivers on ports of the system's choice.

    drive(url=..., spans=1, wait=1)         one run of the driver: its metrics, warnings, end
    receiver                                the OTLP receiver of npm, in Node
    stand_in(answer(503), answer(200))      an HTTP server that answers as told, the last for ever
"""

import json
import os
import ssl
import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families
from receivers import BUILD, Receiver, StandIn


class Driven:
    """What a run of the driver has told; the metrics as Prometheus' own parser reads them."""

    def __init__(self, told):
        self.warnings, self.close_ms = told["warnings"], told["close_ms"]
        self.metrics = {(s.name, *s.labels.values()): s.value
                        for family in text_string_to_metric_families(told["metrics"])
                        for s in family.samples}

    def dropped(self, signal="spans"):
        """{reason: how many}"""
        return {key[2]: value for key, value in self.metrics.items()
                if key[:2] == ("retort_telemetry_dropped_total", signal)}

    def sent(self, signal="spans"):
        return self.metrics.get(("retort_telemetry_sent_total", signal), 0)


@pytest.fixture(scope="session")
def drive():
    def drive(env=None, **options):
        clean = {k: v for k, v in os.environ.items()
                 if not k.startswith("OTEL_") and not k.lower().endswith("_proxy")}
        done = subprocess.run([BUILD / "telemetry-driver", *[f"{k}={v}" for k, v in options.items()]],
                              capture_output=True, text=True, timeout=60, env={**clean, **(env or {})})
        assert done.returncode == 0 and not done.stderr, done.stderr
        return Driven(json.loads(done.stdout))

    return drive


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def stand_in():
    servers = []

    def start(*script, tls=None):
        servers.append(StandIn(script, tls))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


# ---- certificates ----

@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A folder with an authority (ca), and a server and a client that it knows."""
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=ca")
    for name in ("server", "client"):
        (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", f"{name}.crt")
    return folder


@pytest.fixture
def tls(certificates):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.crt", certificates / "server.key")
    context.load_verify_locations(certificates / "ca.crt")
    return context
