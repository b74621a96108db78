# SPDX-License-Identifier: BSD-2-Clause
# The daemon believes nothing that stands in memory which a client can write: a user
# who forges completions in a ring of his own harms nobody else.
load helpers
load native

setup_file()
{
	[ "$(id -u)" = 0 ] || { skip_file "needs root"; return 0; }
	have_tools python3 || return 0
	start_ibfs
	[ -z "${IBFS_DIR:-}" ] || chmod 755 "$IBFS_DIR"
}
teardown_file() { stop_ibfs; }

setup()
{
	native_setup 2
	began=()
}
teardown()
{
	kill "${began[@]}" 2>/dev/null || true
	wait
	native_teardown
}

# In the background, its output and errors in a file, its input ours.
as() # UID FILE COMMAND...
{
	setpriv --reuid="$1" --regid="$1" --clear-groups timeout 120 "${@:3}" <&0 >"$2" 2>&1 3>&- &
	began+=($!)
}
mapped_or_skip() { ! grep -q passthrough "$1" || skip "no FUSE passthrough here"; }

# forge QPN: as another user, in the background, once it is at it. forged: it ends.
forge()
{
	out=$BATS_TEST_TMPDIR/forge
	as 65534 "$out" python3 "$TOP/tests/forge.py" "$MNT" "$1"
	forger=$!
	wait_for -t 30 file_has "$out" "forging|passthrough|Error" || { cat "$out"; return 1; }
	mapped_or_skip "$out"
}
forged()
{
	kill "$forger" || fail "the forger was done before: $(cat "$out")"
	wait "$forger" || fail "the forger failed: $(cat "$out")"
}

@test "what waits for a message gets nothing but that message" {
	local reader
	qp a 0; qp b 1
	echo connect peer=b >qp/a/ctl
	as 0 "$BATS_TEST_TMPDIR/got" head -c 11 qp/b/recv
	reader=$!
	# Beside the two MRs: the request's memory.
	wait_for grep -q "uid=0 bytes=196608" pinned
	forge "$(cat qp/b/qpn)"
	forged
	[ ! -s "$BATS_TEST_TMPDIR/got" ] || fail "$(od -c "$BATS_TEST_TMPDIR/got")"
	echo -n "the message" >qp/a/send
	wait $reader
	[ "$(cat "$BATS_TEST_TMPDIR/got")" = "the message" ]
	echo "and the next" >qp/a/send
	run timeout 10 head -1 qp/b/recv
	[ "$output" = "and the next" ]
}

# Those who talk, as a user: 150 messages, of which some go inline.
# shellcheck disable=SC2016 # for the other shell
talk='
	mkdir pd/ta pd/tb cq/ta cq/tb qp/ta qp/tb
	for n in 0 1; do
		d=$([ $n = 0 ] && echo ta || echo tb)
		echo create device=rxe$n >pd/$d/ctl
		echo create device=rxe$n cqe=64 >cq/$d/ctl
		echo create pd=$d cq=$d >qp/$d/ctl
	done
	echo connect peer=tb >qp/ta/ctl
	cat qp/tb/qpn
	read -r
	for n in $(seq 150); do
		printf "number %d%*s\n" $n $((n % 3 * 200)) "" >qp/ta/send
		timeout 20 head -1 qp/tb/recv | tr -d " "
	done
	rmdir qp/ta qp/tb cq/ta cq/tb pd/ta pd/tb'

@test "a user hears what another says while a third forges that" {
	local talker qpn=$BATS_TEST_TMPDIR/qpn
	mkfifo "$BATS_TEST_TMPDIR/go"
	exec {go}<>"$BATS_TEST_TMPDIR/go"
	as 65533 "$qpn" bash -c "$talk" <&"$go"
	talker=$!
	wait_for test -s "$qpn"
	forge "$(cat "$qpn")"
	echo >&"$go"
	wait "$talker"
	forged
	diff "$qpn" <(head -1 "$qpn"; seq -f number%g 150)
}

@test "what send and recv ask for shows in no queue" {
	local cq=$BATS_TEST_TMPDIR/cq
	qp a 0; qp b 1
	echo connect peer=b >qp/a/ctl
	cat cq/c0/ring >"$cq.before"
	for n in 3 1000 60000; do
		head -c $n /dev/urandom >"$BATS_TEST_TMPDIR/sent"
		dd if="$BATS_TEST_TMPDIR/sent" of=qp/a/send bs=64K status=none
		timeout 20 dd if=qp/b/recv of="$BATS_TEST_TMPDIR/got" bs=64K count=1 status=none
		cmp "$BATS_TEST_TMPDIR/sent" "$BATS_TEST_TMPDIR/got"
	done
	cmp "$cq.before" cq/c0/ring
	grep -q "^waiting 0" cq/c0/status
	# A request beside them does, and has the first number.
	echo "write mr=m0 length=10 raddr=0 rkey=$(cat mr/m1/rkey)" >qp/a/post
	wc_is c0 "wr_id=1 status=* opcode=rdma_write *"
}

@test "each send and recv ends: reset, an error, the queue pair's end" {
	local how reader
	for how in "echo reset >qp/b/ctl" "echo err >qp/b/ctl" "rmdir qp/b"; do
		qp a 0; qp b 1
		echo connect peer=b timeout=8 retry_cnt=1 >qp/a/ctl
		as 0 "$BATS_TEST_TMPDIR/why" head -1 qp/b/recv
		reader=$!
		wait_for grep -q "uid=0 bytes=196608" pinned
		eval "$how"
		! wait "$reader" || fail "a message came"
		grep -q "Input/output error" "$BATS_TEST_TMPDIR/why"
		# What was sent is told to have failed, and not in the queue.
		echo "to nobody" >qp/a/send
		wait_for grep -q "^refused send: retry_exc_err" qp/a/status
		grep -q "^waiting 0" cq/c0/status
		[ ! -e qp/b ] || rmdir qp/b
		rmdir qp/a
		wait_for grep -q "uid=0 bytes=131072" pinned
	done
}
