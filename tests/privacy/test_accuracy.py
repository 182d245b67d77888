# SPDX-License-Identifier: Apache-2.0
"""How well personal data is found, by type, on the labelled texts in this folder."""

import pathlib

import pytest
import scorer

HERE = pathlib.Path(__file__).parent
LABELLED = ("people.txt", "people_held_out.txt", "mixed.txt", "world.txt", "secrets.txt", "documents.txt")
FLOORS = {"EMAIL": 0.98, "CREDIT_CARD": 0.98, "IBAN": 0.98, "IP": 0.98, "URL": 0.98, "SSN": 0.95,
          "API_KEY": 0.95, "PHONE": 0.90, "ADDRESS": 0.75, "DATE_OF_BIRTH": 0.90, "PASSPORT": 0.85,
          "DRIVER_LICENSE": 0.85}


@pytest.fixture(scope="module")
def people(program):
    rows = [row for name in LABELLED for row in scorer.read(HERE / name)]
    return scorer.Score(rows, scorer.scan(program, [text for text, _ in rows]))


@pytest.mark.parametrize("kind", FLOORS)
def test_enough_is_found_and_little_else(people, kind):
    errors = [e for e in people.errors if e[1] == kind]
    assert people.precision(kind) >= FLOORS[kind], errors
    assert people.recall(kind) >= FLOORS[kind], errors


def test_technical_texts_raise_fewer_than_two_alarms_in_a_hundred(program):
    rows = scorer.read(HERE / "technical.txt")
    found = scorer.scan(program, [text for text, _ in rows])
    alarms = [(text, spans) for (text, _), spans in zip(rows, found, strict=True) if spans]
    assert len(alarms) < 0.02 * len(rows), alarms


def test_the_set_is_large_enough():
    assert sum(len(scorer.read(path)) for path in HERE.glob("*.txt")) >= 600
