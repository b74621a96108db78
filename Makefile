# SPDX-License-Identifier: BSD-2-Clause
# ibfs: one Makefile. `make help` lists the targets; V=1 shows the commands.

PREFIX ?= /usr/local
SBINDIR ?= $(PREFIX)/sbin
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
MANDIR ?= $(PREFIX)/share/man
SYSCONFDIR ?= /etc
DESTDIR ?=

PKGS := fuse3 libconfig libibverbs libibumad libibmad libdeflate
# One shell answers for all packages; before `make setup` it may know none.
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lev -lm -lpthread

CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
override CFLAGS += -std=gnu17 $(WARN) -D_GNU_SOURCE -DFUSE_USE_VERSION=314 \
	-fno-strict-aliasing -Iinclude -Isrc $(PKG_CFLAGS)
override CPPFLAGS += -MMD -MP

ifeq ($(SANITIZE),1)
BUILD := build-sanitize
SAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else
BUILD := build
SAN :=
endif

ifneq ($(V),1)
Q := @
say = @printf '  %-7s %s\n' $(1) $(2)
else
say = @:
endif

SRCS := $(wildcard src/*.c src/fs/*.c src/backend/*.c src/hca/*.c src/fabric/*.c src/ipoib/*.c)
OBJS := $(SRCS:%.c=$(BUILD)/%.o)
LIB_OBJS := $(filter-out $(BUILD)/src/main.o,$(OBJS))
TEST_SRCS := $(wildcard tests/*.c bench/*.c)
# A test program may need more than the C library: the daemon's own parts.
TEST_BINS := $(TEST_SRCS:%.c=$(BUILD)/%)

all: $(BUILD)/ibfs $(BUILD)/ibfs-run $(BUILD)/libibfs-run.so

objs: $(OBJS)

$(BUILD)/ibfs: $(OBJS)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(SAN) $(LDFLAGS) -o $@ $^ $(PKG_LIBS)

$(BUILD)/libibfs.a: $(LIB_OBJS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) crs $@ $^

$(BUILD)/src/run/%.o: src/run/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -c -o $@ $<

$(BUILD)/%.o: %.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(SAN) -c -o $@ $<

$(BUILD)/ibfs-run: $(BUILD)/src/run/ibfs-run.o
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

# The preloaded library is never sanitized: it runs inside other people's programs.
$(BUILD)/libibfs-run.so: $(BUILD)/src/run/preload.o
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -o $@ $^ -ldl

# Test and bench programs are one file each, linked with the daemon's parts.
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/libibfs.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(SAN) $(LDFLAGS) -o $@ $^ $(PKG_LIBS)
$(BUILD)/bench/%: $(BUILD)/bench/%.o $(BUILD)/libibfs.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(SAN) $(LDFLAGS) -o $@ $^ $(PKG_LIBS)

tests: all $(TEST_BINS)

clean:
	$(call say,RM,build)
	$(Q)rm -rf build build-sanitize

.PHONY: all objs tests clean
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
