# SPDX-License-Identifier: BSD-2-Clause
# Long text: made in pieces, so that one reader doesn't hold up others.
load helpers

setup_file()
{
	export SOCK=$BATS_FILE_TMPDIR/9p
	"$BUILD/tests/gentopo" fat3 3 36 >"$BATS_FILE_TMPDIR/net"
	cat >"$BATS_FILE_TMPDIR/conf" <<-END
	subnet = "static";
	topology = "net";
	devices = ( $(awk -F'"' '/^Ca/ && n < 100 { printf "%s{ name = \"rxe%d\"; node = \"%s\"; }", n ? "," : "", n, $2; n++ }' "$BATS_FILE_TMPDIR/net") );
	END
	start_ibfs "$BATS_FILE_TMPDIR/conf" --9p "unix:$SOCK"
}
teardown_file() { stop_ibfs; }

topology() { echo "$MNT/fabric/topology"; }
open_files() { awk '/^ibfs_open_files / { print $2 }' "$MNT/metrics"; }
open_files_are() { [ "$(open_files)" = "$1" ]; }

@test "a piece a turn, equal shares, changes in between, any offset, cancelled reads" {
	"$BUILD/tests/long_text"
}

@test "a large fabric's topology is the fabric, by FUSE and by 9P" {
	local switch
	cat "$(topology)" >"$BATS_TEST_TMPDIR/net"
	run -0 "$BUILD/tests/topology" load "$BATS_TEST_TMPDIR/net"
	[ "$output" = "$("$BUILD/tests/topology" load "$BATS_FILE_TMPDIR/net")" ]
	"$BUILD/tests/topology" dump "$BATS_TEST_TMPDIR/net" | cmp - "$BATS_TEST_TMPDIR/net"
	"$BUILD/tests/p9" -s "$SOCK" cat fabric/topology | cmp - "$BATS_TEST_TMPDIR/net"
	dd if="$(topology)" bs=777 2>/dev/null | cmp - "$BATS_TEST_TMPDIR/net"
	tail -c 12345 "$(topology)" | cmp - <(tail -c 12345 "$BATS_TEST_TMPDIR/net")
	dd if="$(topology)" bs=1000 skip=123 count=3 2>/dev/null |
		cmp - <(dd if="$BATS_TEST_TMPDIR/net" bs=1000 skip=123 count=3 2>/dev/null)
	switch=$MNT/fabric/switches/S-0008f10500000000
	[ "$(wc -l <"$switch/lft")" -gt 900 ]
	"$BUILD/tests/p9" -s "$SOCK" cat fabric/switches/S-0008f10500000000/lft | cmp - "$switch/lft"
}

@test "metrics has a line for each port, once" {
	local name
	cat "$MNT/metrics" >"$BATS_TEST_TMPDIR/metrics"
	for name in data_transmitted_bytes_total vl15_dropped_total state lid; do
		[ "$(grep -c "^ibfs_port_$name{" "$BATS_TEST_TMPDIR/metrics")" = 100 ]
		[ "$(grep "^ibfs_port_$name{" "$BATS_TEST_TMPDIR/metrics" | cut -d' ' -f1 |
			sort -u | wc -l)" = 100 ]
		[ "$(grep -c "^# TYPE ibfs_port_$name " "$BATS_TEST_TMPDIR/metrics")" = 1 ]
	done
	grep -qx 'ibfs_devices 100' "$BATS_TEST_TMPDIR/metrics"
	grep -qx 'ibfs_fabric_nodes 1116' "$BATS_TEST_TMPDIR/metrics"
	[ "$(tail -n 1 "$BATS_TEST_TMPDIR/metrics" | cut -d' ' -f1)" = ibfs_cpu_seconds_total ]
}

names() { find "$MNT/fabric/$1" -mindepth 1 -maxdepth 1 -printf '%f\n'; }
lists() { [ "$(names "$1" | wc -l)" = "$2" ] && [ "$(names "$1" | sort -u | wc -l)" = "$2" ]; }

@test "large directories are listed whole, each name once" {
	local links
	links=$(awk '/ links, / { print $3 }' <("$BUILD/tests/topology" load "$BATS_FILE_TMPDIR/net"))
	lists nodes 972
	lists switches 144
	lists links "$links"
	cmp <(names links | sort) <("$BUILD/tests/p9" -s "$SOCK" ls fabric/links | sort)
	cmp <(names nodes | sort) <("$BUILD/tests/p9" -s "$SOCK" -v 9P2000 ls fabric/nodes | sort)
}

@test "readers that are killed leave nothing" {
	local before i
	before=$(open_files)
	for i in {1..40}; do
		cat "$(topology)" "$(topology)" "$MNT/metrics" >/dev/null &
		[ $((i % 4)) = 0 ] || cat "$MNT/version" >/dev/null
		kill -KILL $! || true
		wait $! 2>/dev/null || true
	done
	wait_for open_files_are "$before"
	cat "$(topology)" >/dev/null
}

@test "a read is answered before thousands of files of a program that ended are closed" {
	need_root
	# What is left open is told by the answer to a read that came after all RELEASEs.
	run -0 python3 - "$MNT" "$IBFS_PID" <<-'END'
	import os, re, resource, signal, sys, threading
	tree, daemon = sys.argv[1], int(sys.argv[2])
	def state(pid):
	    return re.search(r"^State:\s+(\w)", open(f"/proc/{pid}/status").read(), re.M)[1]
	resource.setrlimit(resource.RLIMIT_NOFILE, (3000, 3000))
	accounts = os.open(tree + "/accounts", os.O_RDONLY)
	ready, end = os.pipe(), os.pipe()
	child = os.fork()
	if not child:
	    files = [os.open(tree + "/version", os.O_RDONLY) for _ in range(2500)]
	    os.write(ready[1], b"x")
	    os.read(end[0], 1)
	    os._exit(0)
	os.read(ready[0], 1)
	os.kill(daemon, signal.SIGSTOP)
	while state(daemon) != "T":
	    pass
	os.write(end[1], b"x")
	os.waitpid(child, 0)
	text = []
	reader = threading.Thread(target=lambda: text.append(os.pread(accounts, 65536, 0)))
	reader.start()
	# Until it sleeps in its read: a system call whose first argument is the file.
	call = f"/proc/self/task/{reader.native_id}/syscall"
	while open(call).read().split()[1:2] != [hex(accounts)]:
	    pass
	os.kill(daemon, signal.SIGCONT)
	reader.join()
	print(re.search(r"^uid=0 .* files=(\d+)/", text[0].decode(), re.M)[1])
	END
	[ "$output" -gt 2300 ]
}

@test "files that are read in part keep a window of their text" {
	[[ $BUILD != *-sanitize* ]] || skip "a sanitizer keeps freed memory"
	run -0 python3 - "$(topology)" "$IBFS_PID" <<-'END'
	import os, re, sys
	def rss():
	    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{sys.argv[2]}/status").read())[1])
	before = rss()
	text = open(sys.argv[1], "rb").read()
	files = [os.open(sys.argv[1], os.O_RDONLY) for _ in range(600)]
	for fd in files:
	    assert os.pread(fd, 4096, 0) == text[:4096]
	for fd in files:
	    data = os.pread(fd, 4096, 60000)
	    assert data and text.startswith(data, 60000)
	print((rss() - before) // 1024, len(text) * len(files) >> 20)
	END
	read -r took all <<<"$output"
	[ "$all" -gt 200 ]
	[ "$took" -lt 40 ]
}
