# SPDX-License-Identifier: BSD-2-Clause
# The verbs of the system's devices from a shell: the second daemon's objects are
# libibverbs' on the first one's devices.
load helpers
load nested

setup_file()
{
	nested_can || return 0
	start_ibfs
	start_nested 'backend = "verbs";'
}
teardown_file() { stop_ibfs; }
teardown()
{
	[ -n "${BATS_TEST_COMPLETED:-}" ] || cat "$NMNT/errors" >&2
	cd /
	drop_objects "$NMNT"
	drop_objects "$MNT"
}

make_objects()	# TREE DEVICE
{
	local q
	cd "$1" || return 1
	mkdir pd/p cq/c mr/src mr/dst qp/a qp/b
	echo "create device=$2" >pd/p/ctl
	echo "create device=$2 cqe=64" >cq/c/ctl
	for q in src dst; do
		echo 'create pd=p size=1M access=local_write,remote_write,remote_read,remote_atomic' >mr/$q/ctl
	done
	for q in a b; do echo 'create type=rc pd=p cq=c sq=16 rq=16' >qp/$q/ctl; done
}

drop_objects()	# TREE
{
	local kind dir
	for kind in mcast qp mw mr ah srq cq xrcd pd; do
		for dir in "$1/$kind"/*/; do
			[ ! -d "$dir" ] || rmdir "$dir"
		done
	done
}

wc_line() { run -0 timeout 20 head -1 "$1/cq/c/wc"; }

@test "the session of a shell, on one device" {
	local size
	make_objects "$NMNT" rxe0
	echo 'connect peer=b' >qp/a/ctl
	cp /etc/services mr/src/data
	size=$(stat -c %s /etc/services)
	echo "write mr=src length=$size raddr=0 rkey=$(cat mr/dst/rkey)" >qp/a/post
	wc_line "$NMNT"
	assert_line "^wr_id=1 status=success opcode=rdma_write .*qp=a"
	cmp -n "$size" /etc/services mr/dst/data
}

@test "a window and a region of another domain bind nothing" {
	local pds before
	make_objects "$NMNT" rxe0
	echo 'connect peer=b' >qp/a/ctl
	mkdir pd/q
	echo 'create device=rxe0' >pd/q/ctl
	for pds in "q p" "p q"; do
		mkdir mw/w mr/m
		echo "create pd=${pds% *} type=2" >mw/w/ctl
		echo "create pd=${pds#* } size=4K access=local_write,remote_write,mw_bind" >mr/m/ctl
		before=$(cat mw/w/status)
		run ! bash -c 'echo "bind_mw mw=w mr=m access=remote_write" >qp/a/post'
		[ "$(cat mw/w/status)" = "$before" ]
		rmdir mw/w mr/m
	done
}

@test "between the second daemon and the first" {
	local size lid_a lid_b
	make_objects "$NMNT" rxe0
	make_objects "$MNT" rxe1
	lid_a=$(($(cat "$NMNT/rxe0/1/lid"))) lid_b=$(($(cat "$MNT/rxe1/1/lid")))
	echo "connect lid=$lid_b qpn=$(cat "$MNT/qp/a/qpn")" >"$NMNT/qp/a/ctl"
	echo "connect lid=$lid_a qpn=$(cat "$NMNT/qp/a/qpn")" >"$MNT/qp/a/ctl"
	size=$(stat -c %s /etc/services)
	cp /etc/services "$NMNT/mr/src/data"
	echo "write mr=src length=$size raddr=0 rkey=$(cat "$MNT/mr/dst/rkey")" >"$NMNT/qp/a/post"
	wc_line "$NMNT"
	assert_line "status=success opcode=rdma_write"
	cmp -n "$size" /etc/services "$MNT/mr/dst/data"
	# And back: a read, an atomic, a message.
	echo "read mr=src length=$size raddr=0 rkey=$(cat "$NMNT/mr/src/rkey")" >"$MNT/qp/a/post"
	wc_line "$MNT"
	assert_line "status=success opcode=rdma_read"
	cmp -n "$size" /etc/services "$MNT/mr/src/data"
	echo "fetch_and_add mr=src raddr=0 rkey=$(cat "$MNT/mr/dst/rkey") add=1" >"$NMNT/qp/a/post"
	wc_line "$NMNT"
	assert_line "status=success opcode=fetch_add"
	run -0 sh -c "timeout 20 head -c 5 '$MNT/qp/a/recv' & echo hello >'$NMNT/qp/a/send'; wait"
	[ "$output" = hello ]
}

@test "statuses and events" {
	make_objects "$NMNT" rxe0
	echo 'connect peer=b' >qp/a/ctl
	exec 5<qp/b/events
	echo "write mr=src length=8 raddr=0 rkey=0x1234567" >qp/a/post
	wc_line "$NMNT"
	assert_line "status=rem_access_err"
	run -0 timeout 20 head -1 <&5
	exec 5<&-
	assert_line "event=qp_access_err"
	run -0 cat qp/a/status
	assert_line "^state err"
	run ! rmdir pd/p
}

@test "notification, limits, resize" {
	make_objects "$NMNT" rxe0
	echo 'connect peer=b' >qp/a/ctl
	echo 'notify' >cq/c/ctl
	echo "write mr=src length=8 raddr=0 rkey=$(cat mr/dst/rkey)" >qp/a/post
	run -0 timeout 20 head -1 cq/c/events
	assert_line "event=comp"
	echo 'resize cqe=200' >cq/c/ctl
	wc_line "$NMNT"
	run -0 grep cqe cq/c/status
	assert_line "cqe 200"
	mkdir srq/s
	echo 'create pd=p wr=16 sge=2' >srq/s/ctl
	echo 8 >srq/s/limit
	run -0 timeout 20 head -1 srq/s/limit
	[ "$output" = 8 ]
	rmdir srq/s
}

@test "datagrams" {
	make_objects "$NMNT" rxe0
	mkdir ah/h qp/u qp/v
	for q in u v; do
		echo 'create type=ud pd=p cq=c' >qp/$q/ctl
		echo 'init port=1 qkey=0x11' >qp/$q/ctl
		echo 'rtr' >qp/$q/ctl
		echo 'rts psn=0' >qp/$q/ctl
	done
	echo "create pd=p lid=$(($(cat rxe0/1/lid)))" >ah/h/ctl
	echo "recv mr=dst length=256" >qp/v/post
	echo "send mr=src length=16 ah=h qpn=$(cat qp/v/qpn) qkey=0x11" >qp/u/post
	run -0 sh -c 'timeout 20 head -1 cq/c/wc; timeout 20 head -1 cq/c/wc'
	assert_line "opcode=send .*qp=u"
	assert_line "opcode=recv .*qp=v"
	rmdir ah/h
}

@test "what the driver can't do is refused, in words" {
	make_objects "$NMNT" rxe0
	mkdir xrcd/x mr/f
	run ! sh -c "echo 'create device=rxe0' >xrcd/x/ctl"
	file_has errors "EOPNOTSUPP: rxe0: the system's driver can't do XRC"
	run ! sh -c "echo 'create pd=p size=4K max_pages=4' >mr/f/ctl"
	file_has errors "EOPNOTSUPP: rxe0: no process has fast registration"
	mkdir qp/s
	run ! sh -c "echo 'create type=smi pd=p cq=c' >qp/s/ctl"
	file_has errors "EOPNOTSUPP: rxe0: no process has QPs of type smi"
	# The object says it, too, in the driver's words.
	file_has xrcd/x/status "^refused rxe0: the system's driver can't do XRC"
	run ! sh -c "echo 'rereg access=local_write' >mr/src/ctl"
	file_has mr/src/status "^refused rxe0: the system's driver can't register memory anew"
	echo 'connect peer=b' >qp/a/ctl
	run ! sh -c "echo 'masked_fetch_and_add mr=src raddr=0 rkey=1 add=1' >qp/a/post"
	file_has qp/a/status "^refused rxe0: no process can post masked_fetch_and_add on it"
	run ! sh -c "echo 'atomic_write value=1 raddr=0 rkey=1' >qp/a/post"
	file_has qp/a/status "^refused rxe0: no process can post atomic_write on it"
	[ ! -e rxe0/uverbs ]
	rmdir xrcd/x
}

@test "the device goes under its objects" {
	echo "ca extra 1" >"$MNT/fabric/ctl"
	echo "device extra name=rxe7" >"$MNT/fabric/ctl"
	wait_for test -e "$NMNT/rxe7/1/state"
	make_objects "$NMNT" rxe7
	exec 5<cq/c/wc
	echo "undevice rxe7" >"$MNT/fabric/ctl"
	wait_for not test -e "$NMNT/rxe7"
	run timeout 20 head -1 <&5
	exec 5<&-
	assert_line "Input/output error"
	run -0 cat qp/a/status
	assert_line "^state gone"
	drop_objects "$NMNT"
}
