# SPDX-License-Identifier: BSD-2-Clause
# What bats files share: a daemon on a mount point of its own, programs run on
# it, waiting with a deadline, and strict checks at the end. Loaded by
# `load helpers`; tests/run says which build (IBFS_BUILD).
#
#	setup_file()	{ start_ibfs conf-file-or-nothing; }
#	teardown_file()	{ stop_ibfs; }
#	@test "..."	{ run ib ibstat; ... }
#
# $MNT is the mount point, $IBFS_PID the daemon, $IBFS_DIR a scratch directory.
# Environment crosses from setup_file to tests; files under $IBFS_DIR do too.

bats_require_minimum_version 1.5.0
TOP=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
BUILD=${IBFS_BUILD:-$TOP/build}
PATH=$PATH:/usr/sbin:/sbin
unset IBFS_MOUNT
export TSAN_OPTIONS=suppressions=$TOP/tests/tsan.supp

# Say why, to bats' log, and fail.
fail()
{
	printf '%s\n' "$*" >&2
	return 1
}

# wait_for [-t SECONDS] COMMAND...: until it succeeds; 10 seconds unless given.
wait_for()
{
	local limit=10 end
	if [ "$1" = -t ]; then
		limit=$2
		shift 2
	fi
	end=$((SECONDS + limit))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -le $end ] || fail "not within $limit s: $*" || return 1
		sleep 0.05
	done
}

# Conditions for wait_for.
file_is() { [ "$(cat "$1")" = "$2" ]; }
file_has() { grep -qE -- "$2" "$1"; }
not() { ! "$@"; }
# A process that is gone, or a zombie that its parent hasn't fetched yet.
is_gone()
{
	[ ! -e "/proc/$1" ] || [ "$(awk '/^State:/ { print $2 }' "/proc/$1/status")" = Z ]
}

# Skips, with one reason a cause so that they can be counted. bats can't skip in
# setup_file: skip_file there makes setup(), below, skip each test.
skip_file() { export IBFS_SKIP=$1; }
have_tools()
{
	local tool
	for tool; do
		command -v "$tool" >/dev/null || { skip_file "$tool is not installed"; return 1; }
	done
}
need_root() { [ "$(id -u)" = 0 ] || skip "needs root"; }
need_tool()
{
	local tool
	for tool; do command -v "$tool" >/dev/null || skip "$tool is not installed"; done
}
need_kernel()	# MAJOR MINOR
{
	local major minor
	IFS=.- read -r major minor _ < <(uname -r)
	[ "$major" -gt "$1" ] || { [ "$major" = "$1" ] && [ "$minor" -ge "$2" ]; } ||
		skip "needs Linux $1.$2"
}
need_unshare()
{
	unshare -m true 2>/dev/null || skip "needs permission for a mount namespace"
}

# But for what the threads of the bells have, from the first bell on and for ever.
fd_count() { find "/proc/$1/fd" -mindepth 1 -printf '%l\n' | grep -cvF 'anon_inode:[io_uring]'; }
# But for ThreadSanitizer's own, which every process of that build has.
thread_count()
{
	local own=0
	[[ $BUILD != *-thread ]] || own=1
	echo $(($(awk '/^Threads:/ { print $2 }' "/proc/$1/status") - own))
}
has_threads() { [ "$(thread_count "$1")" = "$2" ]; }	# PID NUMBER
fds_are() { [ "$(fd_count "$IBFS_PID")" = "$1" ]; }

# start_ibfs [CONF [OPTIONS...]]: CONF is a file's name; "" or nothing: defaults.
# IBFS_BY, an array: what runs the daemon, by exec.
start_ibfs()
{
	local conf=${1:-}
	[ -w /dev/fuse ] || { skip_file "no /dev/fuse here"; return 0; }
	[ $# -eq 0 ] || shift
	IBFS_DIR=$(mktemp -d "${TMPDIR:-/tmp}/ibfs-test.XXXXXX")
	MNT=$IBFS_DIR/ib
	SYSTEM_MNT=$MNT
	export IBFS_DIR MNT SYSTEM_MNT
	mkdir "$MNT"
	: >"$IBFS_DIR/spawned"
	# For the daemon only: what it runs on is not sanitized.
	ASAN_OPTIONS=log_path=$IBFS_DIR/asan:detect_leaks=1 \
	UBSAN_OPTIONS=log_path=$IBFS_DIR/asan:print_stacktrace=1 \
	TSAN_OPTIONS=log_path=$IBFS_DIR/asan:history_size=4 \
		"${IBFS_BY[@]}" "$BUILD/ibfs" -f ${conf:+-c "$conf"} "$@" "$MNT" \
		</dev/null >"$IBFS_DIR/log" 2>&1 3>&- &
	export IBFS_PID=$!
	wait_for -t 60 ibfs_ready || { show_logs; return 1; }
	is_mounted || { show_logs; fail "the daemon ended at its start"; }
	IBFS_FDS=$(fd_count "$IBFS_PID")
	export IBFS_FDS
	[ -z "${IBFS_NESTED:-}" ] || on_nested
}

# With IBFS_NESTED the tests run on a second daemon's tree, whose devices are this
# one's: $SYSTEM_MNT is the first one's, which has the fabric. NESTED_CONF is more of
# the second one's configuration.
on_nested()
{
	load nested
	start_nested "backend = \"verbs\"; ${NESTED_CONF:-}"
	export MNT=$NMNT
}
is_soft() { [ -z "${IBFS_NESTED:-}" ]; }
# What there isn't on the system's devices, in words.
soft_only() { is_soft || skip "a device of the system: $1"; }

is_mounted() { mountpoint -q "$MNT"; }
ibfs_ready() { is_gone "$IBFS_PID" || { is_mounted && [ -e "$MNT/version" ]; }; }

# spawn NAME COMMAND...: a process beside the tests, its output in $IBFS_DIR/NAME.log.
spawn()
{
	local name=$1
	shift
	if [ "$1" = ib ]; then
		shift
		set -- "$BUILD/ibfs-run" -m "$MNT" "$@"	# the process itself, no subshell
	fi
	"$@" </dev/null >"$IBFS_DIR/$name.log" 2>&1 3>&- &
	echo "$name $!" >>"$IBFS_DIR/spawned"
}

# spawned NAME: its process id (of the last of that name).
spawned() { awk -v name="$1" '$1 == name { pid = $2 } END { print pid }' "$IBFS_DIR/spawned"; }

# reap NAME [SIGNAL]: end it and wait until it is gone.
reap()
{
	local pid
	pid=$(spawned "$1")
	[ -n "$pid" ] || fail "nothing spawned as $1" || return 1
	kill "-${2:-TERM}" "$pid" 2>/dev/null || true
	wait_for -t 20 is_gone "$pid" || return 1
	sed -i "/^$1 $pid\$/d" "$IBFS_DIR/spawned"
}

reap_all()
{
	local name pid signal=TERM ok=0
	# OpenSM doesn't end when its files have gone: it fills its log.
	! is_gone "$IBFS_PID" || signal=KILL
	while read -r name pid; do
		reap "$name" $signal || { kill -KILL "$pid"; ok=1; }
	done < <(tac "$IBFS_DIR/spawned")	# who came last uses what came first
	return $ok
}

# The daemon's descriptors are back where they were, it ends with status 0 at an
# unmount, nothing stays mounted, no sanitizer had anything to say.
stop_ibfs()
{
	local ok=0 status=0
	[ -n "${IBFS_PID:-}" ] || return 0
	MNT=${SYSTEM_MNT:-$MNT}
	# nested.bash's; of a daemon that has died it can't be looked at.
	[ -z "${NMNT:-}" ] || umount -l "$NMNT" 2>/dev/null || true
	reap_all || ok=1
	if is_gone "$IBFS_PID"; then
		fail "the daemon died during the tests" || ok=1
	else
		wait_for fds_are "$IBFS_FDS" || { ls -l "/proc/$IBFS_PID/fd" >&2; ok=1; }
		unmount || ok=1
		wait_for -t 30 is_gone "$IBFS_PID" || { kill -KILL "$IBFS_PID"; ok=1; }
	fi
	# Only the shell that started it can fetch its status.
	if jobs -p | grep -qx "$IBFS_PID"; then
		wait "$IBFS_PID" || status=$?
		[ $status = 0 ] || fail "the daemon's exit status was $status" || ok=1
	fi
	! is_mounted || { umount -l "$MNT"; fail "still mounted: $MNT" || ok=1; }
	[ -z "${NMNT:-}" ] || ! grep -q " $NMNT " /proc/self/mountinfo ||
		fail "still mounted: $NMNT" || ok=1
	! compgen -G "$IBFS_DIR/asan*" >/dev/null || fail "the sanitizer complained" || ok=1
	[ $ok = 0 ] || show_logs
	rm -rf --one-file-system "$IBFS_DIR"
	unset IBFS_PID
	return $ok
}

unmount()
{
	if [ "$(id -u)" = 0 ]; then umount "$MNT"; else fusermount3 -u "$MNT"; fi
}

# The ends of all logs, for whoever reads the failure.
show_logs()
{
	local file
	for file in "$IBFS_DIR"/log "$IBFS_DIR"/asan* "$IBFS_DIR"/*.log; do
		[ -s "$file" ] || continue
		echo "--- $file"
		tail -n 60 "$file"
	done >&2
	[ ! -s "$MNT/errors" ] || { echo "--- errors"; timeout 5 cat "$MNT/errors"; } >&2
}

# What a test file's own setup() and teardown() should begin with.
setup()
{
	[ -z "${IBFS_SKIP:-}" ] || skip "$IBFS_SKIP"
}

teardown()
{
	[ -n "${BATS_TEST_COMPLETED:-}" ] || [ -z "${IBFS_PID:-}" ] || show_logs
}

# setup() of tests whose programs have rings with the daemon, by ibfs-run's library.
setup_rings()
{
	[ -z "${IBFS_SKIP:-}" ] || skip "$IBFS_SKIP"
	need_root; need_unshare; need_kernel 6 9
	# Programs that are sanitized themselves: ours comes before ASan's library.
	export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
}

# Run an unmodified program on the tree.
ib() { "$BUILD/ibfs-run" -m "$MNT" "$@"; }

# start_opensm NAME DEVICE [OPTIONS...]: an SM on port 1 of the device (port 0 of a
# switch), until it says that the subnet is up. Its log is $IBFS_DIR/NAME.osm.log.
start_opensm()
{
	local name=$1 dev=$2 guid
	shift 2
	# The port's GUID is the second half of its first GID.
	guid=0x$(cut -d: -f5- "$MNT/$dev"/[0-9]*/gids/0 | tr -d :)
	mkdir -p "$IBFS_DIR/$name"
	OSM_TMP_DIR=$IBFS_DIR/$name OSM_CACHE_DIR=$IBFS_DIR/$name \
		spawn "$name" ib opensm -d 2 -g "$guid" -f "$IBFS_DIR/$name.osm.log" "$@"
	wait_for -t 60 file_has "$IBFS_DIR/$name.osm.log" "SUBNET UP"
}

# fat_tree SUBNET: a configuration and its topology, into the directory $1: four
# leaves of four hosts and two spines, with the devices rxe0 (host 0, leaf 0), rxe1
# (host 5, leaf 1) and sw0 (leaf 0).
fat_tree()	# DIRECTORY SUBNET
{
	"$BUILD/tests/gentopo" fat2 4 4 2 8 >"$1/fat.net"
	cat >"$1/fat.conf" <<-END
	subnet = "$2";
	topology = "fat.net";
	devices = ( { name = "rxe0"; node = "H-0002c90300000000"; },
	            { name = "rxe1"; node = "H-0002c90300000050"; },
	            { name = "sw0"; node = "S-0008f10500000000"; } );
	END
}

# start_fat_tree [OPTIONS...]: the daemon with it, and OpenSM on rxe0 with these options.
start_fat_tree()
{
	fat_tree "$BATS_FILE_TMPDIR" sm
	start_ibfs "$BATS_FILE_TMPDIR/fat.conf"
	[ -n "${IBFS_PID:-}" ] || return 0
	start_opensm sm rxe0 "$@"
	wait_for file_is "$MNT/rxe1/1/state" "4: ACTIVE"
}

# C test programs, and what runs on the C library alone.
ctest() { local name=$1; shift; "$BUILD/tests/$name" "$@"; }

# assert_line REGEX: some line of $output matches. refute_line: none does.
assert_line() { grep -qE -- "$1" <<<"$output" || fail "no line matches: $1" "in:" "$output"; }
refute_line() { ! grep -E -- "$1" <<<"$output" >&2 || fail "a line matches: $1"; }
assert_status() { [ "$status" = "$1" ] || fail "status $status, not $1:" "$output"; }
