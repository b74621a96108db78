# SPDX-License-Identifier: BSD-2-Clause
# QP0, QP1 and raw packets from a shell.
load helpers
load native

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

setup()
{
	[ -n "${IBFS_SKIP:-}" ] || need_root
	native_setup 2
}
teardown() { native_teardown; }

@test "a SMP by directed route from qp/NAME/post" {
	soft_only "QP0 and QP1 are the kernel's, MADs go by umad"
	qp s 0 type=smi port=1
	[ "$(cat qp/s/qpn)" = 0x0 ]
	printf 'init\nrtr\nrts\n' >qp/s/ctl
	mkdir ah/h
	echo "create pd=p0 lid=0xffff port=1" >ah/h/ctl
	# Get(NodeInfo), one hop: version 1, class 0x81, hop count 1, TID 5, path 0,1.
	hex m0 0 "01810101 00000001 00000000 00000005 0011 0000 00000000"
	hex m0 32 "ffffffff"
	hex m0 128 "0001"
	echo "recv mr=m0 offset=4096 length=296 wr_id=9" >qp/s/post
	echo "send mr=m0 length=256 ah=h qpn=0" >qp/s/post
	run timeout 10 sh -c 'head -1 cq/c0/wc; head -1 cq/c0/wc'
	assert_line "wr_id=9 status=success opcode=recv byte_len=296 qp=s src_qp=0x0 slid=65535"
	assert_line "wr_id=2 status=success opcode=send"
	# GetResp, D bit, no error; NodeInfo of a switch.
	[ "$(unhex m0 4136 6)" = 018101818000 ] && [ "$(unhex m0 4202 1)" = 02 ]
}

@test "a MAD to another port's QP1, and smpquery goes on beside it" {
	soft_only "QP0 and QP1 are the kernel's, MADs go by umad"
	qp g 0 type=gsi port=1
	printf 'init\nrtr\nrts\n' >qp/g/ctl
	grep -q "qkey 0x80010000" qp/g/status
	mkdir ah/h
	echo "create pd=p0 lid=$(lid rxe1) port=1" >ah/h/ctl
	# Get(ClassPortInfo) of performance management
	hex m0 0 "01040101 00000000 00000000 00000006 0001 0000 00000000"
	echo "recv mr=m0 offset=4096 length=296 wr_id=9" >qp/g/post
	echo "send mr=m0 length=256 ah=h qpn=1" >qp/g/post
	run timeout 10 sh -c 'head -1 cq/c0/wc; head -1 cq/c0/wc'
	assert_line "wr_id=9 status=success opcode=recv byte_len=296 qp=g src_qp=0x1"
	[ "$(unhex m0 4136 6)" = 010401810000 ]
	need_tool perfquery
	run ib perfquery -C rxe1 -c "$(lid rxe0)" 1
	assert_status 0
}

@test "one QP0 a port, for root" {
	soft_only "QP0 and QP1 are the kernel's, MADs go by umad"
	qp s 0 type=smi port=1
	chmod 755 "$IBFS_DIR"
	mkdir qp/t qp/u
	run bash -c 'echo "create type=smi port=1 pd=p0 cq=c0" >qp/t/ctl'
	[[ $output == *"busy"* ]]
	run bash -c 'echo "create type=smi port=2 pd=p0 cq=c0" >qp/t/ctl'
	[[ $output == *"Invalid argument"* ]]
	for type in smi gsi raw_packet; do
		chmod 666 pd/p0/ctl cq/c0/ctl
		run setpriv --reuid=65534 --regid=65534 --clear-groups bash -c '
			mkdir qp/mine; echo "create type='$type' pd=p0 cq=c0" >qp/mine/ctl; rmdir qp/mine'
		[[ $output == *"Operation not permitted"* ]]
		grep -q "is for root" errors
	done
	run bash -c 'echo "create type=raw_ipv6 pd=p0 cq=c0" >qp/u/ctl'
	[[ $output == *"not supported"* ]] && grep -q "type=raw_packet sends" qp/u/status
}

@test "raw packets from a port to another's raw QPs" {
	local to from
	qp r 0 type=raw_packet
	qp s 1 type=raw_packet
	for q in r s; do printf 'init port=1\nrtr\nrts\n' >qp/$q/ctl; done
	to=$(printf %04x "$(lid rxe1)") from=$(printf %04x "$(lid rxe0)")
	echo "recv mr=m1 length=4096" >qp/s/post
	# LRH with LNH 0, raw header of EtherType 0x88b5, 8 bytes.
	hex m0 0 "0000 $to 0000 $from 0000 88b5 0123456789abcdef"
	echo "send mr=m0 length=20" >qp/r/post
	wc_is c1 "*status=success opcode=recv byte_len=20 qp=s*slid=$(lid rxe0)*"
	wc_is c0 "*status=success opcode=send*"
	[ "$(unhex m1 0 20)" = "0000${to}0005${from}000088b50123456789abcdef" ]
	# A transport packet is refused, by its completion.
	hex m0 0 "0002"
	echo "send mr=m0 length=20" >qp/r/post
	wc_is c0 "*status=loc_qp_op_err*"
	grep -q "state sqe" qp/r/status
	echo rts >qp/r/ctl
}
