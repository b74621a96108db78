# SPDX-License-Identifier: BSD-2-Clause
# mad/: queries and answers in words, against the tools that ask the same.
load helpers

setup_file()
{
	have_tools opensm smpquery perfquery saquery || return 0
	start_fat_tree
}

teardown_file() { stop_ibfs; }

is_gone_dir() { [ ! -e "$1" ]; }
lid_of() { printf '%d\n' "$(cat "$MNT/$1"/[0-9]/lid)"; }
# ask WORDS...: the answer, and what the status file says. The machine may be busy,
# or the SM with its next sweep.
ask()
{
	local n
	[[ $* == *timeout=* ]] || set -- "$@" timeout=20000
	exec 5<>"$MNT/rxe0/1/mad/clone"
	read -r -u 5 n
	echo "$*" >&5 && cat "$MNT/rxe0/1/mad/$n/data"
	grep -E '^(query|refused)' "$MNT/rxe0/1/mad/$n/status"
	exec 5>&-
}
# Lines of a tool and of an answer that both must have.
fields() { grep -E '^[A-Za-z0-9]+:\.*' | grep -vE "${1:-^$}" | sort; }
same()
{
	[ -s "$BATS_TEST_TMPDIR/a" ] || fail "nothing"
	diff "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b"
}

@test "SMPs by LID and by directed route are smpquery's" {
	local lid
	lid=$(lid_of rxe1)
	ask "smp get NodeInfo lid=$lid" | fields >"$BATS_TEST_TMPDIR/a"
	ib smpquery nodeinfo "$lid" | fields >"$BATS_TEST_TMPDIR/b"
	same
	ask "smp get NodeInfo dr=0,1" | fields >"$BATS_TEST_TMPDIR/a"
	ib smpquery -D nodeinfo 0,1 | fields >"$BATS_TEST_TMPDIR/b"
	same
	ask "smp get PortInfo dr=0,1 mod=2" | fields Mkey >"$BATS_TEST_TMPDIR/a"
	ib smpquery -D portinfo 0,1 2 | fields Mkey >"$BATS_TEST_TMPDIR/b"
	same
	ask "smp get SwitchInfo dr=0,1" | fields >"$BATS_TEST_TMPDIR/a"
	ib smpquery -D switchinfo 0,1 | fields >"$BATS_TEST_TMPDIR/b"
	same
	run -0 ask "smp get PKeyTable lid=$lid"
	assert_line '^0 0xffff$'
	assert_line '^query answered$'
	[ "$(ask "smp get SMInfo lid=$(lid_of rxe0)" | grep -c .)" -ge 4 ]
}

@test "counters are perfquery's, and set clears them" {
	local lid
	lid=$(lid_of rxe1)
	ask "perf get PortCounters lid=$lid port=1" | fields 'Port(Xmit|Rcv)(Data|Pkts)' \
		>"$BATS_TEST_TMPDIR/a"
	ib perfquery "$lid" 1 | fields 'Port(Xmit|Rcv)(Data|Pkts)' >"$BATS_TEST_TMPDIR/b"
	[ -s "$BATS_TEST_TMPDIR/a" ]
	# perfquery leaves out what the port says that it hasn't.
	grep -Fxf "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b" | cmp - "$BATS_TEST_TMPDIR/b"
	run ask "perf get PortCounters lid=$lid port=1"
	! grep -qE '^PortXmitPkts:\.+0$' <<<"$output" || fail "no packets: $output"
	run -0 ask "perf set PortCounters lid=$lid port=1 select=0xffff"
	ask "perf get PortCountersExtended lid=$lid port=1" | grep -q '^PortXmitData:'
	ask "perf get PortCounters lid=$lid port=1" >"$BATS_TEST_TMPDIR/a"
	[ "$(sed -n 's/^PortXmitPkts:\.*//p' "$BATS_TEST_TMPDIR/a")" -le 4 ]
}

@test "the subnet administrator's records are saquery's" {
	local lid
	lid=$(lid_of rxe1)
	run -0 ask "sa get PathRecord slid=$(lid_of rxe0) dlid=$lid"
	assert_line "^dlid $lid\$"
	assert_line "^query answered\$"
	run ask "sa table NodeRecord"
	assert_line '^query answered$'
	sed -n 's/^Guid:\.*//p' <<<"$output" | sort >"$BATS_TEST_TMPDIR/a"
	ib saquery NR | sed -n 's/^.*[^_]node_guid\.*\(0x.*\)/\1/p; s/^[ \t]*node_guid\.*//p' | sort -u |
		sort >"$BATS_TEST_TMPDIR/b"
	[ "$(grep -c . "$BATS_TEST_TMPDIR/a")" = 22 ] || fail "not 22 nodes:" "$output"
	same
	run -0 ask "sa get NodeRecord lid=$lid"
	assert_line "^lid $lid\$"
	assert_line '^Guid:\.+0x0002c90300000050$'
	[ "$(ask 'sa table LinkRecord' | grep -c ^from_lid)" -ge 48 ]
}

@test "who reads before the answer is there gets all of it" {
	local cable
	cable=$(echo "$SYSTEM_MNT"/fabric/links/*0002c90300000050:*)
	ask "smp get NodeInfo lid=$(lid_of rxe1)" >"$BATS_TEST_TMPDIR/a"
	echo 'delay=300ms' >"$cable/ctl"
	ask "smp get NodeInfo lid=$(lid_of rxe1)" >"$BATS_TEST_TMPDIR/b"
	echo 'delay=0' >"$cable/ctl"
	same
	grep -q '^Guid:' "$BATS_TEST_TMPDIR/a"
}

@test "what has no answer says why" {
	run ask "smp get NodeInfo dr=0,1,200 timeout=50"
	assert_line 'timed out'
	assert_line '^query no answer in 50 ms$'
	run ask "smp get SwitchInfo lid=$(lid_of rxe1)"
	assert_line '^query status 0x00.*: .'
	run ask "sa get NodeRecord lid=4321"
	assert_line '^query status 0x0300: no records$'
}

@test "bad queries are refused" {
	local line n
	exec 5<>"$MNT/rxe0/1/mad/clone"
	read -r -u 5 n
	while read -r line; do
		run bash -c "echo '$line' >&5"
		[[ $output == *'Invalid argument'* ]] || fail "$line: $output"
		tail -n 1 "$MNT/errors" | grep -qE '(smp|perf|sa): ' || fail "$line"
	done <<-END
	smp
	smp get
	smp get NodeInfo
	smp get Nothing lid=1
	smp put NodeInfo lid=1
	smp table NodeInfo lid=1
	smp get NodeInfo lid=0
	smp get NodeInfo lid=0xc000
	smp get NodeInfo lid=x
	smp get NodeInfo lid=1 dr=0,1
	smp get NodeInfo dr=
	smp get NodeInfo dr=1
	smp get NodeInfo dr=0,
	smp get NodeInfo dr=0,,1
	smp get NodeInfo dr=0,0
	smp get NodeInfo dr=0,255
	smp get NodeInfo dr=0,1234567890
	smp get NodeInfo dr=0$(printf ',1%.0s' {1..64})
	smp get NodeInfo lid=1 mod=0x100000000
	smp get NodeInfo lid=1 mkey=z
	smp get NodeInfo lid=1 timeout=0
	smp get NodeInfo lid=1 data=00
	smp set PortInfo lid=1
	smp set PortInfo lid=1 data=00
	smp set PortInfo lid=1 data=$(printf 'zz%.0s' {1..64})
	perf get PortCounters lid=1
	perf get PortCounters port=1
	perf get PortCounters lid=1 port=256
	perf get PortCounters dr=0,1 port=1
	perf set PortCounters lid=1 port=1
	perf set PortCounters lid=1 port=1 select=0x10000
	sa set NodeRecord
	sa get NodeInfo
	sa get NodeRecord lid=0x10000
	sa get NodeRecord lid=1 lid=2
	sa get NodeRecord nothing=1
	sa get PathRecord dgid=zz
	END
	exec 5>&-
}

@test "readers that are killed leave nothing" {
	local n i
	exec 5<>"$MNT/rxe0/1/mad/clone"
	read -r -u 5 n
	echo 'smp get NodeInfo dr=0,1,200 timeout=60000' >&5
	run bash -c "echo 'smp get NodeInfo dr=0,1' >&5"
	[[ $output == *busy* ]]
	for i in 1 2 3; do
		spawn "reader$i" cat "$MNT/rxe0/1/mad/$n/data"
	done
	for i in 1 2 3; do
		reap "reader$i" KILL
	done
	exec 5>&-
	wait_for is_gone_dir "$MNT/rxe0/1/mad/$n"
}
