# SPDX-License-Identifier: BSD-2-Clause
# Every transport opcode on the wire, judged by tshark and by checksums computed
# here anew: posted from a shell, taken from a port's pcap.
load helpers

setup_file()
{
	start_ibfs
	[ -z "${IBFS_SKIP:-}" ] || return 0
	cd "$MNT" || return 1
	spawn cap cat "$SYSTEM_MNT/rxe0/1/pcap"
	wait_for test -s "$IBFS_DIR/cap.log"
	make_objects
	{ rc; uc; ud; special; } || return 1
	! is_soft || xrc || return 1
	cd / || return 1
	reap cap
	mv "$IBFS_DIR/cap.log" "$IBFS_DIR/cap.pcap"
}

teardown_file()
{
	local kind name
	cd "$MNT" || return 0
	for kind in ah qp srq mw mr cq xrcd pd; do
		for name in "$kind"/*; do
			[ "$name" = "$kind/clone" ] || rmdir "$name"
		done
	done
	cd / || return 1
	stop_ibfs
}

# At least so many cross the port.
is_soft && packets=90 || packets=60
lid() { echo $(($(cat "sys/class/infiniband/$1/ports/1/lid"))); }
# post QP N WORDS...: and its completion on cq N is a success
post()
{
	local qp=$1 n=$2 line
	shift 2
	echo "$*" >"qp/$qp/post"
	line=$(timeout 10 head -1 "cq/c$n/wc")
	[[ $line == *status=success* ]] || fail "$*: $line"
}

make_objects()
{
	local n
	for n in 0 1; do
		mkdir pd/p$n cq/c$n cq/r$n mr/m$n
		echo "create device=rxe$n" >pd/p$n/ctl
		echo "create device=rxe$n cqe=256" >cq/c$n/ctl
		echo "create device=rxe$n cqe=256" >cq/r$n/ctl
		echo "create pd=p$n size=64K access=local_write,remote_write,remote_read,remote_atomic,mw_bind" >mr/m$n/ctl
	done
	yes 'no protocol known to tshark' | head -c 65536 >mr/m0/data
}

# pair TYPE: QPs TYPE0 and TYPE1 with path MTU 256, each with receive requests
pair()
{
	local n
	mkdir qp/"$1"0 qp/"$1"1
	for n in 0 1; do echo "create type=$1 pd=p$n cq=c$n recv_cq=r$n" >qp/"$1$n"/ctl; done
	echo "connect peer=${1}1 mtu=256" >qp/"$1"0/ctl
	for n in $(seq 12); do echo "recv mr=m1 offset=32K"; done >qp/"$1"1/post
}

# Sends and writes of one packet and of three, with and without immediate data.
# (Not of less than 8 bytes: there tshark's guess at RPC over RDMA reads past the end.)
messages()	# QP WORDS
{
	local qp=$1 len op
	shift
	for len in 29 700; do
		for op in send send_with_imm write write_with_imm; do
			post "$qp" 0 "$op" mr=m0 length=$len "$@" "$(arguments $op)"
		done
	done
}
arguments()
{
	case $1 in *imm) printf 'imm=0x1234 ' ;; esac
	case $1 in write*) printf 'raddr=0 rkey=%s' "$(cat mr/m1/rkey)" ;; esac
}
reliable()	# QP WORDS
{
	local qp=$1 far len op
	shift
	far="raddr=64 rkey=$(cat mr/m1/rkey)"
	for len in 9 600; do post "$qp" 0 read mr=m0 offset=32K length=$len "$far" "$@"; done
	for op in "cmp_and_swp compare=1 swap=2" "fetch_and_add add=3"; do
		post "$qp" 0 "$op" mr=m0 offset=32K "$far" "$@"
	done
	# libibverbs has no others to post.
	is_soft || return 0
	for op in "masked_cmp_and_swp compare=1 swap=2 compare_mask=7 swap_mask=3" \
		"masked_fetch_and_add add=1 add_mask=0x80"; do
		post "$qp" 0 "$op" mr=m0 offset=32K "$far" "$@"
	done
	post "$qp" 0 atomic_write value=0x1234 "$far" "$@"
}
rc()
{
	local len
	pair rc
	messages rc0
	reliable rc0
	mkdir mw/w
	echo "create pd=p1 type=2" >mw/w/ctl
	for len in 30 500; do
		post rc1 1 bind_mw mw=w mr=m1 offset=0 length=4096 access=remote_write
		post rc0 0 send_with_inv mr=m0 length=$len "key=$(cat mw/w/rkey)"
	done
}
uc() { pair uc; messages uc0; }
ud()
{
	local n
	mkdir ah/h ah/g
	echo "create pd=p0 lid=$(lid rxe1) port=1" >ah/h/ctl
	echo "create pd=p0 lid=$(lid rxe1) port=1 gid=$(cat rxe1/1/gids/0)" >ah/g/ctl
	for n in 0 1; do
		mkdir qp/ud$n
		echo "create type=ud pd=p$n cq=c$n" >qp/ud$n/ctl
		printf 'init qkey=7\nrtr\nrts\n' >qp/ud$n/ctl
	done
	for n in h g; do
		post ud0 0 send text=abc ah=$n "qpn=$(cat qp/ud1/qpn)" qkey=7
		post ud0 0 send_with_imm mr=m0 length=256 imm=1 ah=$n "qpn=$(cat qp/ud1/qpn)" qkey=7
	done
}
xrc()
{
	local srqn len n
	mkdir xrcd/x srq/s qp/ini qp/tgt
	echo "create device=rxe1" >xrcd/x/ctl
	echo "create pd=p1 xrcd=x cq=r1" >srq/s/ctl
	srqn=srqn=$(sed -n 's/^srqn //p' srq/s/status)
	echo "create type=xrc_ini pd=p0 cq=c0" >qp/ini/ctl
	echo "create type=xrc_tgt xrcd=x" >qp/tgt/ctl
	echo "connect peer=tgt mtu=256" >qp/ini/ctl
	for n in $(seq 12); do echo "recv mr=m1 offset=32K"; done >srq/s/post
	messages ini "$srqn"
	reliable ini "$srqn"
	# What it may invalidate belongs to a QP, which a target isn't: the request alone is on the wire.
	for len in 30 500; do
		echo "send_with_inv mr=m0 length=$len key=0x100 $srqn" >qp/ini/post
		[[ $(timeout 10 head -1 cq/c0/wc) == *status=rem_access_err* ]] || return 1
		for n in tgt ini; do echo reset >qp/$n/ctl; done
		echo "connect peer=tgt mtu=256" >qp/ini/ctl
	done
}
# raw LNH BYTES: a raw packet of 72 bytes to the other port, which begin with these behind the LRH
raw()
{
	local to from
	to=$(printf '%04x' "$(lid rxe1)") from=$(printf '%04x' "$(lid rxe0)")
	# shellcheck disable=SC2001 # each pair
	printf %b "$(sed 's/../\\x&/g' <<<"00$1${to}0000$from$2")" >mr/r/data
	post raw 0 send mr=r length=72
}
# MADs and raw packets: what has no opcode of its own
special()
{
	ib smpquery -D nodeinfo 0,1 >/dev/null
	ib perfquery "$(lid rxe1)" 1 >/dev/null
	[ "$(id -u)" = 0 ] || return 0
	mkdir qp/raw mr/r
	echo "create pd=p0 size=4K" >mr/r/ctl
	echo "create type=raw_packet pd=p0 cq=c0" >qp/raw/ctl
	printf 'init\nrtr\nrts\n' >qp/raw/ctl
	raw 00 000088b5
	raw 01 6000000000183b40
}

@test "each opcode is there" {
	need_tool tshark
	local seen all
	seen=$(tshark -r "$IBFS_DIR/cap.pcap" -T fields -e infiniband.bth.opcode 2>/dev/null | grep . | sort -nu | tr '\n' ' ')
	# RC and XRC: all but RESYNC, which is reliable datagrams'; UC; UD; the masked atomics.
	all="$(echo {0..20} 22 23 29 {32..43} 100 101 {160..180} 182 183 189 211 212 219 220) "
	# What libibverbs, with the driver for rxe, has no requests for: XRC, atomic write, masked atomics.
	is_soft || all="$(echo {0..20} 22 23 {32..43} 100 101) "
	[ "$seen" = "$all" ] || fail "$seen"
}

@test "tshark finds nothing malformed" {
	need_tool tshark
	[ "$(tshark -r "$IBFS_DIR/cap.pcap" 2>/dev/null | wc -l)" -gt "$packets" ]
	run -0 tshark -r "$IBFS_DIR/cap.pcap" -V
	refute_line '[Mm]alformed|Expert Info'
	run tshark -r "$IBFS_DIR/cap.pcap"
	for op in 'RC Send Only Invalidate' 'RC Acknowledge' 'RC Compare Swap' 'RC Fetch Add' 'RC Atomic Acknowledge' \
		'RC RDMA Read Response Middle' 'UC RDMA Write Last Immediate' 'UD Send Only Immediate'; do
		assert_line "$op"
	done
}

# The ICRC of IBA 7.8.1 and the VCRC of 7.8.2, and lengths and pads, from the bytes alone.
@test "checksums, lengths and pads are right" {
	run python3 - "$IBFS_DIR/cap.pcap" "$packets" <<-'END'
	import struct, sys, zlib
	data = open(sys.argv[1], "rb").read()
	magic, link = struct.unpack("<I16xI", data[:24])
	order = "<" if magic in (0xa1b2c3d4, 0xa1b23c4d) else ">"
	assert struct.unpack(order + "I", data[20:24])[0] == 197
	def vcrc(b):
	    crc = 0xffff
	    for byte in b:
	        for bit in range(8):
	            crc = crc >> 1 ^ (0xd008 if (crc ^ byte >> bit) & 1 else 0)
	    return crc ^ 0xffff
	def icrc(b, lnh):
	    b = bytearray(b)
	    b[0] |= 0xf0
	    at = 8
	    if lnh == 3:
	        b[:8] = b"\xff" * 8
	        b[8] |= 0x0f
	        b[9:12] = b"\xff" * 3
	        b[15] = 0xff
	        at = 48
	    b[at + 4] = 0xff
	    return zlib.crc32(bytes(b))
	at, packets, raw, grh = 24, 0, 0, 0
	while at < len(data):
	    caplen, = struct.unpack(order + "I", data[at + 8:at + 12])
	    rec = data[at + 16:at + 16 + caplen]
	    at += 16 + caplen
	    kind = rec[8]
	    rlen, _, wlen = struct.unpack(">HHH", rec[10:16])
	    head = 16
	    while kind & 0x80:
	        kind = rec[head]
	        head += 8
	    pkt = rec[head:head + wlen]
	    lnh = pkt[1] & 3
	    words = struct.unpack(">H", pkt[4:6])[0] & 0x7ff
	    body = pkt[:4 * words]
	    assert len(pkt) >= 4 * words + 2, (packets, len(pkt), words)
	    assert struct.unpack("<H", pkt[4 * words:4 * words + 2])[0] == vcrc(body), ("vcrc", packets)
	    packets += 1
	    if lnh < 2:
	        raw += 1
	        continue
	    grh += lnh == 3
	    assert struct.unpack("<I", body[-4:])[0] == icrc(body[:-4], lnh), ("icrc", packets)
	    if lnh == 3:
	        assert struct.unpack(">H", body[12:14])[0] == len(body) - 48
	print(packets > int(sys.argv[2]), raw, grh)
	END
	echo "$output"
	[ "$output" = "True $([ "$(id -u)" = 0 ] && echo 2 || echo 0) 2" ]
}
