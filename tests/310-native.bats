# SPDX-License-Identifier: BSD-2-Clause
# Verbs from a shell: the tree of resources.
load helpers
load native

setup_file()
{
	cat >"${BATS_FILE_TMPDIR}/conf" <<-END
	subnet = "static";
	switches = ( { name = "s1"; ports = 8; }, { name = "s2"; ports = 8; } );
	hcas = ( { name = "rxe0"; ports = 2; }, { name = "rxe1"; ports = 2; }, { name = "rxe2"; } );
	links = ( { a = "rxe0[1]"; b = "s1[1]"; }, { a = "rxe0[2]"; b = "s2[1]"; },
	    { a = "rxe1[1]"; b = "s1[2]"; }, { a = "rxe1[2]"; b = "s2[2]"; },
	    { a = "rxe2[1]"; b = "s2[3]"; }, { a = "s1[8]"; b = "s2[8]"; } );
	END
	start_ibfs "${BATS_FILE_TMPDIR}/conf"
}
teardown_file() { stop_ibfs; }

setup() { native_setup 3 local_write,remote_write,remote_read,remote_atomic,mw_bind; }
teardown() { native_teardown; }

@test "the session of the design, as typed" {
	mkdir "$IBFS_DIR/ib2"
	"$BUILD/ibfs" -f "$IBFS_DIR/ib2" 3>&- &
	pid=$!
	wait_for test -e "$IBFS_DIR/ib2/version"
	cd "$IBFS_DIR/ib2"
	mkdir pd/p cq/c mr/src mr/dst qp/a qp/b
	echo 'create device=rxe0' > pd/p/ctl;  echo 'create device=rxe0 cqe=64' > cq/c/ctl
	for m in src dst; do echo 'create pd=p size=1M access=local_write,remote_write,remote_read' > mr/$m/ctl; done
	for q in a b; do echo 'create type=rc pd=p cq=c sq=16 rq=16' > qp/$q/ctl; done
	echo 'connect peer=b' > qp/a/ctl
	cp /etc/services mr/src/data
	echo "write mr=src length=$(stat -c %s /etc/services) raddr=0 rkey=$(cat mr/dst/rkey)" > qp/a/post
	run head -1 cq/c/wc
	[ "$output" = "wr_id=1 status=success opcode=rdma_write byte_len=$(stat -c %s /etc/services) qp=a" ]
	cmp -n "$(stat -c %s /etc/services)" /etc/services mr/dst/data
	# The same by hand, from reset on.
	for q in a b; do echo reset >qp/$q/ctl; done
	lid=$(sed -n 's/^lid //p' rxe0/1/attr); lid=${lid:-1}
	printf 'init port=1\nrtr lid=%d qpn=%s psn=0 mtu=4096\nrts psn=0\n' 1 "$(cat qp/b/qpn)" >qp/a/ctl
	printf 'init port=1\nrtr lid=%d qpn=%s psn=0 mtu=4096\nrts psn=0\n' 1 "$(cat qp/a/qpn)" >qp/b/ctl
	echo "read mr=src offset=64K length=100 raddr=0 rkey=$(cat mr/dst/rkey)" > qp/a/post
	run head -1 cq/c/wc
	[[ $output == "wr_id=2 status=success opcode=rdma_read byte_len=100 qp=a" ]]
	cd /
	umount "$IBFS_DIR/ib2"
	wait $pid
}

@test "send and receive, immediate data, both atomics" {
	qp a 0; qp b 1
	echo connect peer=b >qp/a/ctl
	put m0 "hello there"
	echo "recv mr=m1 length=100 wr_id=77" >qp/b/post
	echo "send mr=m0 length=11" >qp/a/post
	wc_is c1 "wr_id=77 status=success opcode=recv byte_len=11 qp=b*"
	wc_is c0 "wr_id=1 status=success opcode=send *"
	got m1 0 "hello there"
	echo "recv" >qp/b/post
	echo "write_with_imm mr=m0 length=5 raddr=1000 rkey=$(cat mr/m1/rkey) imm=0x1234" >qp/a/post
	wc_is c1 "*opcode=recv_rdma_with_imm byte_len=5 qp=b imm=0x1234"
	wc_is c0 "wr_id=2 status=success opcode=rdma_write *"
	got m1 1000 hello
	printf '\1\0\0\0\0\0\0\0' | dd of=mr/m1/data bs=1 seek=2048 conv=notrunc status=none
	echo "fetch_and_add mr=m0 offset=64 raddr=2048 rkey=$(cat mr/m1/rkey) add=41" >qp/a/post
	wc_is c0 "*status=success opcode=fetch_add*"
	[ "$(od -An -tu8 -j2048 -N8 mr/m1/data)" -eq 42 ] && [ "$(od -An -tu8 -j64 -N8 mr/m0/data)" -eq 1 ]
	echo "cmp_and_swp mr=m0 offset=64 raddr=2048 rkey=$(cat mr/m1/rkey) compare=42 swap=7" >qp/a/post
	wc_is c0 "*status=success opcode=comp_swap*"
	[ "$(od -An -tu8 -j2048 -N8 mr/m1/data)" -eq 7 ]
}

@test "send and recv files" {
	qp a 0; qp b 1
	echo connect peer=b >qp/a/ctl
	timeout 20 head -1 qp/b/recv >"$BATS_TEST_TMPDIR/got" &
	echo "a line" >qp/a/send
	wait $!
	[ "$(cat "$BATS_TEST_TMPDIR/got")" = "a line" ]
	# Too long for inline, and the other way.
	timeout 20 dd if=qp/a/recv of="$BATS_TEST_TMPDIR/got" bs=64K count=1 status=none &
	head -c 60000 /dev/urandom >"$BATS_TEST_TMPDIR/sent"
	dd if="$BATS_TEST_TMPDIR/sent" of=qp/b/send bs=64K status=none
	wait $!
	cmp "$BATS_TEST_TMPDIR/sent" "$BATS_TEST_TMPDIR/got"
	# Nothing of it shows in wc.
	[[ $(cat cq/c0/status) == *"waiting 0"* ]]
}

@test "datagrams by an address handle, and back from the completion" {
	for n in 0 1; do
		qp "u$n" $n type=ud
		printf 'init qkey=0x11\nrtr\nrts\n' >"qp/u$n/ctl"
	done
	mkdir ah/h ah/back
	echo "create pd=p0 lid=$(cat rxe1/1/lid 2>/dev/null || echo 2) port=1" >ah/h/ctl
	lid=$(cat sys/class/infiniband/rxe1/ports/1/lid)
	echo "modify lid=$((lid))" >ah/h/ctl
	put m0 datagram
	echo "recv mr=m1 length=1000" >qp/u1/post
	echo "send mr=m0 length=8 ah=h qpn=$(cat qp/u1/qpn) qkey=0x11" >qp/u0/post
	wc=$(timeout 10 head -1 cq/c1/wc)
	[[ $wc == *"status=success opcode=recv byte_len=48 qp=u1 src_qp=$(cat qp/u0/qpn)"* ]]
	got m1 40 datagram
	# shellcheck disable=SC2001
	slid=$(sed 's/.*slid=\([0-9]*\).*/\1/' <<<"$wc")
	echo "create pd=p1 port=1 slid=$slid sl=0" >ah/back/ctl
	echo "recv mr=m0 offset=1000 length=1000" >qp/u0/post
	wc_is c0 "*opcode=send*"
	echo "send text=answer ah=back qpn=$(cat qp/u0/qpn) qkey=0x11" >qp/u1/post
	wc_is c0 "*opcode=recv byte_len=46*"
	got m0 1040 answer
}

@test "multicast to three receivers across two switches" {
	gid=ff12:a01b::1:2
	for n in 0 1 2; do
		qp "u$n" $n type=ud
		printf 'init qkey=0x11\nrtr\nrts\n' >"qp/u$n/ctl"
		mkdir "mcast/g$n"
		echo "create qp=u$n gid=$gid" >"mcast/g$n/ctl"
		echo "recv mr=m$n offset=4096 length=1000" >"qp/u$n/post"
	done
	run ! rmdir qp/u0
	mkdir ah/h
	# In a static subnet who has the fabric gives the group its LID, the only one.
	mlid=$(sed -n 's/^lid //p' mcast/g0/status)
	is_soft || mlid=$(($(awk '{ print $1; exit }' "$SYSTEM_MNT/fabric/switches/s1/mft")))
	echo "create pd=p0 lid=$mlid gid=$gid port=1" >ah/h/ctl
	echo "send text=all ah=h qkey=0x11 unsignaled" >qp/u0/post
	for n in 0 1 2; do
		wc_is c$n "*status=success opcode=recv byte_len=43 qp=u$n*grh"
		got m$n 4136 all
	done
}

@test "an SRQ shared by two QPs, its limit event" {
	mkdir srq/s
	echo "create pd=p1 wr=8 sge=1" >srq/s/ctl
	echo 2 >srq/s/limit
	[ "$(cat srq/s/limit)" = 2 ]
	qp a 0; qp b 0; qp c 1 srq=s; qp d 1 srq=s
	echo connect peer=c >qp/a/ctl
	echo connect peer=d >qp/b/ctl
	for i in 1 2 3; do echo "recv mr=m1 offset=$((i * 100)) length=100 wr_id=$i" >srq/s/post; done
	run ! rmdir srq/s
	echo "send text=one" >qp/a/post
	wc_is c1 "wr_id=1 *qp=c*"
	echo "send text=two" >qp/b/post
	wc_is c1 "wr_id=2 *qp=d*"
	[ "$(timeout 10 head -1 srq/s/events)" = event=srq_limit_reached ]
	[ "$(cat srq/s/limit)" = 0 ]
	got m1 100 one && got m1 200 two
}

@test "XRC: the SRQ is named by number" {
	soft_only "rdma-core's rxe driver has no XRC"
	mkdir xrcd/x srq/s
	echo "create device=rxe1" >xrcd/x/ctl
	echo "create pd=p1 xrcd=x cq=c1" >srq/s/ctl
	qp ini 0 type=xrc_ini
	mkdir qp/tgt qp/too
	echo "create type=xrc_tgt xrcd=x" >qp/tgt/ctl
	echo "connect peer=tgt" >qp/ini/ctl
	echo "create type=xrc_tgt xrcd=x open=$(cat qp/tgt/qpn)" >qp/too/ctl
	rmdir qp/tgt			# the other opener keeps it
	echo "recv mr=m1 length=100" >srq/s/post
	echo "send text=xrc srqn=$(sed -n 's/^srqn //p' srq/s/status)" >qp/ini/post
	wc_is c1 "*status=success opcode=recv byte_len=3*"
	got m1 0 xrc
	rmdir qp/too qp/ini srq/s xrcd/x
}

@test "memory windows of both types" {
	qp a 0; qp b 1
	echo connect peer=b >qp/a/ctl
	mkdir mw/w1 mw/w2
	echo "create pd=p1 type=1" >mw/w1/ctl; echo "create pd=p1 type=2" >mw/w2/ctl
	echo "bind_mw mw=w1 mr=m1 offset=100 length=10 access=remote_write" >qp/b/post
	wc_is c1 "*status=success opcode=bind_mw*"
	run ! rmdir mr/m1
	echo "write mr=m0 length=10 raddr=100 rkey=$(cat mw/w1/rkey)" >qp/a/post
	wc_is c0 "*status=success*"
	echo "bind_mw mw=w2 mr=m1 offset=200 length=10 access=remote_read" >qp/b/post
	wc_is c1 "*status=success opcode=bind_mw*"
	echo "read mr=m0 length=10 raddr=200 rkey=$(cat mw/w2/rkey)" >qp/a/post
	wc_is c0 "*status=success*"
	echo "local_inv key=$(cat mw/w2/rkey)" >qp/b/post
	wc_is c1 "*status=success opcode=local_inv*"
	echo "read mr=m0 length=10 raddr=200 rkey=$(cat mw/w2/rkey)" >qp/a/post
	wc_is c0 "*status=rem_access_err*"
	[ "$(timeout 10 head -1 qp/b/events)" = event=qp_access_err ]
	rmdir mw/w1 mw/w2
}

@test "fast registration" {
	soft_only "no process has fast registration"
	qp a 0; qp b 1
	echo connect peer=b >qp/a/ctl
	mkdir mr/f
	echo "create pd=p1 size=64K access=local_write max_pages=4" >mr/f/ctl
	refuses "fast_reg mr=f length=4096" qp/b/post
	refuses "fast_reg mr=f pages= length=4096" qp/b/post
	echo "fast_reg mr=f pages=0x3000,0x1000 iova=0x10000 length=8192 access=local_write,remote_write" >qp/b/post
	wc_is c1 "*status=success opcode=fast_reg_mr*"
	put m0 paged
	echo "write mr=m0 length=5 raddr=0x11000 rkey=$(cat mr/f/rkey)" >qp/a/post
	wc_is c0 "*status=success*"
	got f 4096 paged
}

@test "CQ events: notify, solicited, at N" {
	qp a 0; qp b 1
	echo connect peer=b >qp/a/ctl
	for i in 1 2 3 4; do echo recv mr=m1 length=10 >qp/b/post; done
	echo notify solicited >cq/c1/ctl
	echo send text=x >qp/a/post
	echo send text=x solicited >qp/a/post
	[ "$(timeout 10 head -1 cq/c1/events)" = event=comp ]
	echo notify_at count=4 >cq/c1/ctl
	printf 'send text=x\nsend text=y\n' >qp/a/post
	[ "$(timeout 10 head -1 cq/c1/events)" = event=comp ]
	[[ $(cat cq/c1/status) == *"waiting 4"* ]]
	echo notify report_missed >cq/c1/ctl
	[ "$(timeout 10 head -1 cq/c1/events)" = event=missed ]
	echo resize cqe=5 >cq/c1/ctl
	refuses "resize cqe=3" cq/c1/ctl
}

@test "path migration across two ports" {
	qp a 0; qp b 1
	echo connect peer=b >qp/a/ctl
	l0=$(($(cat sys/class/infiniband/rxe0/ports/2/lid))) l1=$(($(cat sys/class/infiniband/rxe1/ports/2/lid)))
	echo "modify alt_port=2 alt_lid=$l1 alt_timeout=12 path_mig=rearm" >qp/a/ctl
	echo "modify alt_port=2 alt_lid=$l0 alt_timeout=12 path_mig=rearm" >qp/b/ctl
	echo "write mr=m0 length=8 raddr=0 rkey=$(cat mr/m1/rkey)" >qp/a/post
	wc_is c0 "*status=success*"
	grep -q "path_mig armed" qp/a/status
	link=$(echo "$SYSTEM_MNT"/fabric/links/rxe0:1*)
	echo down >"$link/ctl"
	put m0 survived
	echo "write mr=m0 length=8 raddr=0 rkey=$(cat mr/m1/rkey)" >qp/a/post
	wc_is c0 "*status=success*"
	echo up >"$link/ctl"
	got m1 0 survived
	[ "$(timeout 10 head -1 qp/a/events)" = event=path_mig ]
	grep -q "^port 2" qp/a/status && grep -q "path_mig migrated" qp/b/status
}

@test "mr/N/data keeps its size" {
	[ "$(stat -c %s mr/m0/data)" = 65536 ]
	: >mr/m0/data
	run ! truncate -s 100 mr/m0/data
	run dd if=/dev/zero of=mr/m0/data bs=1K count=65 conv=notrunc
	[[ $output == *"No space left"* ]]
	[ "$(stat -c %s mr/m0/data)" = 65536 ]
}

@test "names, numbers, order" {
	run ! mkdir qp/17
	run mkdir pd/p0
	[[ $output == *"File exists"* ]]
	mkdir qp/n
	run ! cat qp/n/qpn
	refuses "connect peer=n" qp/n/ctl
	grep -q "refused" qp/n/status
	run ! rmdir pd/p0
	[[ $(cat pd/p0/status) == *"refused others depend on it"* ]]
	rmdir mr/m0 pd/p0
	mkdir pd/p0 mr/m0
}

@test "another device's memory has no place in a request" {
	qp a 0
	qp b 1
	mkdir mw/w mr/f
	echo "create pd=p1 type=2" >mw/w/ctl
	# No process has fast registration on a device of the system.
	echo "create pd=p1 size=64K $(! is_soft || echo max_pages=4)" >mr/f/ctl
	echo connect peer=b >qp/a/ctl
	for line in "send mr=m1" "send mr=m0 mr=m1" "recv mr=m1" "bind_mw mw=w mr=m0" "fast_reg mr=f pages=0"; do
		refuses "$line" qp/a/post
		grep -qE "^refused ${line%% *}: m[rw]=(m1|w|f) is of device rxe1, but qp/a of rxe0\$" qp/a/status || fail "$line"
	done
	grep -qx "waiting 0" cq/c0/status
}

@test "a ctl write stops at the line that fails" {
	mkdir qp/a
	run python3 - <<-END
	import os
	fd = os.open("qp/a/ctl", os.O_WRONLY)
	first = b"create pd=p0 cq=c0\n"
	print(os.write(fd, first + b"rts\ninit\n") == len(first))
	END
	[ "$output" = True ]
	grep -q "state reset" qp/a/status
}

@test "another user's objects can't be used" {
	need_root
	chmod 755 "$IBFS_DIR"
	run setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '
		mkdir pd/mine mr/mine && echo create device=rxe0 >pd/mine/ctl &&
		! echo "create pd=p0 size=4K" >mr/mine/ctl; cat mr/mine/status; ! cat mr/m0/data; ! rmdir pd/p1'
	echo "$output"
	[[ $output == *"pd/p0 is not yours"* ]] && [[ $output == *"Permission denied"* ]]
	[ -d pd/p1 ]
	rmdir mr/mine pd/mine
}

@test "memory is counted against RLIMIT_MEMLOCK" {
	need_root
	run setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '
		ulimit -l 100; mkdir pd/mine mr/l1 mr/l2; echo create device=rxe0 >pd/mine/ctl
		echo "create pd=mine size=60K" >mr/l1/ctl && ! echo "create pd=mine size=60K" >mr/l2/ctl
		cat mr/l2/status'
	[[ $output == *"RLIMIT_MEMLOCK"* ]]
	grep -q "uid=65534 bytes=61440 limit=102400" pinned
	rmdir mr/l1 mr/l2 pd/mine
	run ! grep -q uid=65534 pinned
}

@test "a native client's rings and memory, mapped" {
	need_root
	"$BUILD/tests/verbs_native" "$MNT" 2>"$BATS_TEST_TMPDIR/err" || {
		grep -q "No such device" "$BATS_TEST_TMPDIR/err" && skip "no FUSE passthrough here"
		cat "$BATS_TEST_TMPDIR/err"; false; }
}

rings() { run python3 "$TOP/tests/rings.py" "$MNT" "$@"; }

@test "each ring, mapped: sends and datagrams, receive requests, an SRQ's, completions" {
	local ah
	need_tool python3
	qp a 0; qp b 1
	echo connect peer=b >qp/a/ctl
	put m0 "by rings"
	rings "recv b 5 m1 100" "send a 6 m0 8" "wc c1" "wc c0"
	[[ $output != *"No such device"* ]] || skip "no FUSE passthrough here"
	assert_status 0
	[ "$output" = $'5 0 8\n6 0 8' ] || [ "$output" = $'5 0 8\n6 0 0' ] || fail "$output"
	got m1 100 "by rings"
	# More than the queues hold, and the requests' order.
	rings "recv b 1 m1 0" "recv b 2 m1 64" "send a 1 m0 8" "send a 2 m0 3" "wc c1" "wc c1"
	[ "$output" = $'1 0 8\n2 0 3' ] || fail "$output"
	mkdir srq/s ah/h
	echo "create pd=p1 wr=4 sge=1" >srq/s/ctl
	qp u 0 type=ud
	qp v 1 type=ud srq=s
	for q in u v; do printf 'init qkey=0x11\nrtr\nrts\n' >qp/$q/ctl; done
	echo "create pd=p0 lid=$(lid rxe1) port=1" >ah/h/ctl
	ah=$(sed -n 's/^handle //p' ah/h/status)
	rings "srq s 9 m1 200" "send u 8 m0 8 $(cat qp/v/qpn) 0x11 $ah" "wc c1"
	[ "$output" = "9 0 48" ] || fail "$output"
	got m1 240 "by rings"
	# What can't be is told by its completion, and is the QP's end.
	rings "bad a 77"
	grep -qx "state err" qp/a/status
	run timeout 10 sh -c 'for i in 1 2 3 4 5; do head -1 cq/c0/wc; done'
	assert_line "^wr_id=77 status=loc_qp_op_err .* qp=a"
	rmdir qp/v srq/s
}

@test "what a killed client had is gone, its peer's request fails" {
	need_root
	"$BUILD/tests/verbs_native" "$MNT" hang >"$BATS_TEST_TMPDIR/num" 2>"$BATS_TEST_TMPDIR/err" &
	pid=$!
	wait_for test -s "$BATS_TEST_TMPDIR/num" || {
		grep -q "No such device" "$BATS_TEST_TMPDIR/err" && skip "no FUSE passthrough here"
		cat "$BATS_TEST_TMPDIR/err"; false; }
	num=$(cat "$BATS_TEST_TMPDIR/num")
	qp a 0
	echo "connect lid=$(($(cat sys/class/infiniband/rxe1/ports/1/lid))) qpn=$(cat "qp/$num/qpn") retry_cnt=1 timeout=10" >qp/a/ctl
	kill -9 $pid
	wait $pid || true
	wait_for not test -e "qp/$num"
	echo "send text=anyone" >qp/a/post
	wc_is c0 "*status=retry_exc_err*"
	[ -z "$(find qp cq mr pd -maxdepth 1 -name '[0-9]*')" ]
}
