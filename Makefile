# SPDX-License-Identifier: BSD-2-Clause
# ibfs: one Makefile. `make help` lists the targets; V=1 shows the commands.

PREFIX ?= /usr/local
SBINDIR ?= $(PREFIX)/sbin
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
MANDIR ?= $(PREFIX)/share/man
SYSCONFDIR ?= /etc
UDEVDIR ?= $(PREFIX)/lib/udev/rules.d
UNITDIR ?= $(PREFIX)/lib/systemd/system
DESTDIR ?=

comma := ,
PKGS := fuse3 libconfig libibverbs libibumad libibmad libdeflate
# One shell answers for all packages; before `make setup` it may know none.
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lev -lm -lpthread
# What changes the event loop goes through src/loop.c.
PKG_LIBS += $(patsubst %,-Wl$(comma)--wrap=ev_%,timer_start timer_again io_start idle_start idle_stop)

CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
override CFLAGS += -std=gnu17 $(WARN) -D_GNU_SOURCE -DFUSE_USE_VERSION=314 \
	-fno-strict-aliasing -Iinclude -Isrc $(PKG_CFLAGS)
override CPPFLAGS += -MMD -MP

ifeq ($(SANITIZE),1)
BUILD := build-sanitize
SAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else ifeq ($(SANITIZE),thread)
BUILD := build-sanitize-thread
# It doesn't know fences, of which all are for memory shared with other processes.
SAN := -fsanitize=thread -fno-omit-frame-pointer -Wno-tsan
# Its shadow memory has no place for addresses that are too random.
UNRANDOM := setarch -R
else ifeq ($(FUZZ),1)
BUILD := build-fuzz
CC := clang
SAN := -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer
override CFLAGS += -Wno-error -Wno-missing-field-initializers
override CPPFLAGS += -DIBFS_FUZZ
$(BUILD)/tests/p9_fuzz: private SAN += -fsanitize=fuzzer
else
BUILD := build
SAN :=
endif
ifneq ($(SAN),)
override CPPFLAGS += -DIBFS_SANITIZED
endif

# A target that has to install packages first runs make again afterwards, which
# then asks pkg-config anew.
ifneq ($(filter-out help clean setup demo check bench uninstall,$(or $(MAKECMDGOALS),all)),)
ifeq ($(PKG_CFLAGS),)
$(error libraries are missing: run `make setup`, or see contrib/install-deps)
endif
endif

ifneq ($(V),1)
Q := @
say = @printf '  %-7s %s\n' $(1) $(2)
else
say = @:
endif

SRCS := $(wildcard src/*.c src/fs/*.c src/backend/*.c src/backend/verbs/*.c src/hca/*.c src/fabric/*.c src/ipoib/*.c)
OBJS := $(SRCS:%.c=$(BUILD)/%.o)
LIB_OBJS := $(filter-out $(BUILD)/src/main.o,$(OBJS))
TEST_SRCS := $(wildcard tests/*.c bench/*.c)
# A test program may need more than the C library: the daemon's own parts.
TEST_BINS := $(TEST_SRCS:%.c=$(BUILD)/%)
SCRIPTS := .ci/run contrib/install-deps contrib/demo contrib/debian/build tests/run $(wildcard bench/*.sh)
MANPAGES := $(wildcard man/*.[158])

all: $(BUILD)/ibfs $(BUILD)/ibfs-run $(BUILD)/libibfs-run.so

objs: $(OBJS)

# Where ibfs-run finds its library once installed.
RUN_DEFS := -DIBFS_LIBDIR='"$(LIBDIR)"'

# What is compiled depends on how: a file that changes when the flags do.
FLAGS := $(CC) $(CFLAGS) $(SAN) $(LDFLAGS) $(PKG_LIBS)
$(BUILD)/flags: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' > $@
FORCE:

$(BUILD)/ibfs: $(OBJS)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(SAN) $(LDFLAGS) -o $@ $^ $(PKG_LIBS)

$(BUILD)/libibfs.a: $(LIB_OBJS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) crs $@ $^

$(BUILD)/src/run/%.o: src/run/%.c $(BUILD)/flags
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC $(RUN_DEFS) -c -o $@ $<

$(BUILD)/%.o: %.c $(BUILD)/flags
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(SAN) -c -o $@ $<

$(BUILD)/ibfs-run: $(BUILD)/src/run/ibfs-run.o
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

# The preloaded library is never sanitized: it runs inside other people's programs.
# What it calls is found at its start, not by the loader in the midst of things.
$(BUILD)/libibfs-run.so: $(patsubst %.c,$(BUILD)/%.o,$(wildcard src/run/preload*.c))
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-z,now -o $@ $^ -ldl

# Test and bench programs are one file each, linked with the daemon's parts.
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/libibfs.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(SAN) $(LDFLAGS) -o $@ $^ $(PKG_LIBS)
$(BUILD)/bench/%: $(BUILD)/bench/%.o $(BUILD)/libibfs.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(SAN) $(LDFLAGS) -o $@ $^ $(PKG_LIBS)

tests: all $(TEST_BINS)

setup:
	$(Q)contrib/install-deps

demo: setup
	$(Q)$(MAKE) --no-print-directory all
	$(Q)contrib/demo

# TESTS='tests/2*.bats' runs some of them.
check: setup
	$(Q)$(MAKE) --no-print-directory tests
	$(Q)$(UNRANDOM) tests/run $(BUILD) $(TESTS)

bench: setup
	$(Q)$(MAKE) --no-print-directory tests
	$(Q)set -e; for b in bench/*.sh; do "$$b"; done

# 9P's messages, for so long; what is found stands in build-fuzz/, the inputs that
# reach something new in build-fuzz/corpus. `make check` replays tests/corpus/9p.
FUZZ_SECONDS ?= 60
fuzz:
	$(Q)contrib/install-deps build fuzz
	$(Q)$(MAKE) --no-print-directory FUZZ=1 build-fuzz/tests/p9_fuzz
	$(Q)mkdir -p build-fuzz/corpus
	$(Q)build-fuzz/tests/p9_fuzz -max_total_time=$(FUZZ_SECONDS) -max_len=16384 -timeout=20 \
		-rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix=build-fuzz/ \
		build-fuzz/corpus tests/corpus/9p

# One file's findings are its own: a stamp a file, as objects have.
TIDY := $(patsubst %.c,build/lint/%.tidy,$(SRCS) $(wildcard src/run/*.c))
build/lint/%.tidy: %.c .clang-tidy $(wildcard include/ibfs/*.h src/*/*.h)
	$(call say,TIDY,$<)
	$(Q)mkdir -p $(@D)
	$(Q)clang-tidy --quiet $< -- $(CFLAGS) $(RUN_DEFS) 2>$@.err || { cat $@.err; exit 1; }
	$(Q)touch $@

lint: $(TIDY)
	$(Q)contrib/install-deps lint
	$(call say,CPPCHK,src)
	$(Q)cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr --suppressions-list=.cppcheck \
		--include=/usr/include/utlist.h --include=/usr/include/uthash.h \
		--enable=warning,performance,portability -Iinclude -Isrc -D_GNU_SOURCE src
	$(call say,SHCHK,scripts)
	$(Q)shellcheck -x $(SCRIPTS)
	$(Q)shellcheck --shell=bash --exclude=SC2030,SC2031,SC2034,SC2153,SC2154,SC2317 $(wildcard bench/*.bash tests/*.bash tests/*.bats)
	$(call say,MANDOC,man)
	$(Q)mandoc -T lint -W warning $(MANPAGES)

install: all
	install -d $(DESTDIR)$(SBINDIR) $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBDIR)/ibfs $(DESTDIR)$(SYSCONFDIR)
	install -m 755 build/ibfs $(DESTDIR)$(SBINDIR)/ibfs
	install -m 755 build/ibfs-run $(DESTDIR)$(BINDIR)/ibfs-run
	install -m 644 build/libibfs-run.so $(DESTDIR)$(LIBDIR)/ibfs/libibfs-run.so
	[ -e $(DESTDIR)$(SYSCONFDIR)/ibfs.conf ] || \
		install -m 644 conf/ibfs.conf $(DESTDIR)$(SYSCONFDIR)/ibfs.conf
	install -d $(DESTDIR)$(UDEVDIR) $(DESTDIR)$(UNITDIR)
	install -m 644 contrib/udev/90-ibfs.rules $(DESTDIR)$(UDEVDIR)/90-ibfs.rules
	for unit in ibfs.service ibfs@.service; do \
		sed 's|@SBINDIR@|$(SBINDIR)|; s|@SYSCONFDIR@|$(SYSCONFDIR)|' \
			contrib/systemd/$$unit.in > $(DESTDIR)$(UNITDIR)/$$unit || exit 1; \
	done
	for page in $(MANPAGES); do \
		dir=$(DESTDIR)$(MANDIR)/man$${page##*.}; \
		install -d $$dir && install -m 644 $$page $$dir/ || exit 1; \
	done

deb: all
	$(Q)contrib/debian/build build

uninstall:
	rm -f $(DESTDIR)$(SBINDIR)/ibfs $(DESTDIR)$(BINDIR)/ibfs-run
	rm -rf $(DESTDIR)$(LIBDIR)/ibfs
	rm -f $(DESTDIR)$(UDEVDIR)/90-ibfs.rules $(addprefix $(DESTDIR)$(UNITDIR)/,ibfs.service ibfs@.service)
	for page in $(notdir $(MANPAGES)); do \
		rm -f $(DESTDIR)$(MANDIR)/man$${page##*.}/$$page; \
	done

help:
	@echo 'make            build the daemon, ibfs-run and its library in build/'
	@echo 'make setup      install what is missing (apt-get; as root or through sudo)'
	@echo 'make demo       mount a fabric, start OpenSM on it, show what there is'
	@echo 'make check      build and run all tests; TESTS="tests/2*.bats" some'
	@echo '                SANITIZE=1: with AddressSanitizer, thread: with ThreadSanitizer'
	@echo 'make bench      measure, and print ratios against peers'
	@echo 'make fuzz       feed the 9P server what libFuzzer makes up; FUZZ_SECONDS=60'
	@echo 'make lint       clang-tidy, cppcheck, shellcheck, mandoc -T lint'
	@echo 'make install    PREFIX=/usr/local SYSCONFDIR=/etc DESTDIR='
	@echo 'make deb        a Debian package, in build/'
	@echo 'make uninstall  (the configuration stays)'
	@echo 'make clean'
	@echo 'V=1 shows the commands.'

clean:
	$(call say,RM,build)
	$(Q)rm -rf build build-sanitize build-sanitize-thread build-fuzz

.PHONY: all objs tests setup demo check bench fuzz lint install deb uninstall help clean FORCE
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
