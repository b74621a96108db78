# SPDX-License-Identifier: BSD-2-Clause
# A client that is killed in the middle of anything: what it had is gone, and
# its peer's request fails as it would with real hardware.
load helpers
load native

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

setup()
{
	need_tool python3
	native_setup 1 local_write,remote_write,remote_read
	# Packets take a while: there are always some on their way.
	echo delay=300us >"$(echo "$SYSTEM_MNT"/fabric/links/rxe1:1-*)/ctl"
}
teardown()
{
	[ -z "$(spawned client)" ] || reap client KILL
	echo faults off >"$(echo "$SYSTEM_MNT"/fabric/links/rxe1:1-*)/ctl"
	native_teardown
}

numbered() { find pd cq mr mw srq qp ah xrcd mcast -maxdepth 1 -name '[0-9]*'; }
none_numbered() { [ -z "$(numbered)" ]; }

# client MODE: it runs and has said what it has: name, qpn and rkey.
client()
{
	qp a 0
	rm -f "$IBFS_DIR/client.log"
	spawn client python3 "$TOP/tests/kill_client.py" "$MNT" "$1" "$(lid rxe0)" "$(cat qp/a/qpn)" \
		"$(cat mr/m0/rkey)"
	wait_for -t 60 test -s "$IBFS_DIR/client.log"
	read -r name qpn rkey <"$IBFS_DIR/client.log"
	echo "connect lid=$(lid rxe1) qpn=$qpn retry_cnt=3 timeout=13" >qp/a/ctl
}

# Kill it after its peer's Nth completion, while more of the peer's requests wait.
kill_it()	# MODE N
{
	local name qpn rkey i line held posted=20
	client "$1"
	for ((i = 0; i < posted; i++)); do
		echo "write mr=m0 length=64K raddr=0 rkey=$rkey wr_id=$i"
	done >qp/a/post
	for ((i = 0; i < $2; i++)); do
		wc_is c0 "wr_id=$i status=success *"
	done
	held=$(grep -c "uid=$(id -u) " pinned) || true
	[ "$held" = 1 ] && ! none_numbered
	reap client KILL
	wait_for none_numbered || fail "$1: $(numbered)"
	# What had arrived before succeeds; the next one is told; the rest is flushed.
	for (( ; i < posted; i++)); do
		line=$(timeout 10 head -1 cq/c0/wc)
		[[ $line == "wr_id=$i status=success "* ]] || break
	done
	if [ "$i" = "$posted" ]; then
		echo "write mr=m0 length=8 raddr=0 rkey=$rkey wr_id=$i" >qp/a/post
		line=$(timeout 10 head -1 cq/c0/wc)
	fi
	[[ $line == "wr_id=$i status=retry_exc_err opcode=rdma_write "* ]] || fail "$1: $line"
	while ((++i < posted)); do
		wc_is c0 "wr_id=$i status=wr_flush_err *"
	done
	[ "$(sed -n 's/.*bytes=\([0-9]*\).*/\1/p' pinned)" = 65536 ] || fail "$1: $(cat pinned)"
	rmdir qp/a
}

@test "killed while it waits for a completion" { for n in 0 7; do kill_it wc $n; done; }
@test "killed while it waits for a message" { for n in 2 20; do kill_it recv $n; done; }
@test "killed while it reads from its peer" { for n in 0 11; do kill_it read $n; done; }
@test "killed while it writes to its peer" { for n in 4 9; do kill_it write $n; done; }
@test "killed while it sends what nobody receives" { for n in 0 5; do kill_it send $n; done; }
@test "killed while it makes and ends objects" { for n in 1 13; do kill_it churn $n; done; }
