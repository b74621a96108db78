#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# Topology files: all that the format has is read, and what is written is the
# format again, for ibfs and for ibsim. all.net has an example of everything.

# shellcheck disable=SC2059	# records hold printf's escapes
load helpers

setup()
{
	ALL=$BATS_TEST_DIRNAME/topology/all.net
	TMP=$BATS_TEST_TMPDIR
}

# show FILE: what was read of each port into $output.
show()
{
	run ctest topology show "$1"
	assert_status 0
}

# port NODE NUM REGEX: the line of a port in $output.
port()
{
	local line
	line=$(awk -v node="$1" -v num="$2" '/^[^ ]/ { at = $1 } /^ / && at == node && $1 == num' \
		<<<"$output")
	grep -qE -- "$3" <<<"$line" || fail "$1[$2] doesn't match: $3" "$line"
}

@test "nodes: types, ports, GUIDs, vendors, descriptions" {
	show "$ALL"
	assert_line '^S-0008f10500000010 type=2 ports=36 guid=8f10500000010 sysimg=2c90300000010 vendor=2c9 device=1013 enhanced=1 desc=leaf "one", east$'
	assert_line '^H-0002c90300000020 type=1 ports=2 guid=2c90300000020 sysimg=2c90300000020 vendor=0 device=1013 .* desc=host a$'
	assert_line '^Rt1 type=3 ports=1 guid=7 .* desc=a router$'
	assert_line '^S2 type=2 ports=8 guid=8f10500000011 .* enhanced=0 desc=spine of all$'
	# Without a GUID of its own: behind the ports of the one before.
	assert_line '^mod#a type=1 ports=3 guid=2c90300000025 .* desc=mod#a$'
	assert_line '^mod#b type=1 ports=1 guid=2c90300000029 '
}

@test "without any GUID: ibsim's numbers" {
	printf 'Ca 2 "a"\nCa 1 "b"\nSwitch 8 "s"\nSwitch 8 "t"\n' >"$TMP/t.net"
	show "$TMP/t.net"
	assert_line '^a .* guid=100000 '
	assert_line '^b .* guid=100003 '
	assert_line '^s .* guid=200000 '
	assert_line '^t .* guid=200001 '
	port a 2 ' guid=100002 '
	port s 0 ' guid=200000 '
	port s 1 ' guid=0 '
}

@test "GUIDs relative to the last one" {
	printf 'caguid=0x1000\nCa 1 "a"\ncaguid+0x20\nCa 1 "b"\ncaguid+0x30\nCa 1 "c"\n' >"$TMP/t.net"
	show "$TMP/t.net"
	assert_line '^a .* guid=1000 '
	assert_line '^b .* guid=1020 '
	assert_line '^c .* guid=1030 '
}

@test "ports: their own GUIDs, LIDs and LMCs" {
	show "$ALL"
	port S-0008f10500000010 0 ' guid=8f10500000099 lid=7 lmc=2 '
	port H-0002c90300000020 1 ' guid=2c90300000abc lid=5 lmc=0 '
	port H-0002c90300000020 2 ' guid=2c90300000abd lid=6 lmc=1 '
	port Rt1 1 ' guid=8 lid=9 lmc=0 '
	port S2 0 ' lid=12 lmc=0 '
}

@test "a port's GUID may stand at the other end only" {
	printf 'Switch 1 "s"\n[1] "a"[1](abc)\n\nCa 1 "a"\n[1] "s"[1]\n' >"$TMP/t.net"
	show "$TMP/t.net"
	port a 1 ' guid=abc '
}

@test "links' widths and speeds" {
	show "$ALL"
	port S-0008f10500000010 1 ' w=3/2 s=7/4 e=3/2 to=H-0002c90300000020\[1\]'
	port S-0008f10500000010 2 ' w=3/2 s=7/4 e=0/0 to=H-0002c90300000020\[2\]'
	port S-0008f10500000010 3 ' w=1/1 s=1/1 e=0/0 to=Rt1\[1\]'
	# w= s= e= outweigh the comment; s=0 is QDR.
	port S-0008f10500000010 4 ' w=2/2 s=4/4 e=1/1 to=S2\[4\]'
	port S-0008f10500000010 5 ' w=11/8 s=7/4 e=31/16 to=S2\[5\]'
	# What stands in front holds where a line says nothing.
	port mod#a 1 ' w=3/2 s=7/4 e=3/2 '
	for rate in 1xSDR:1:1:0 2xHDR:16:4:4 4xDDR:2:2:0 4xQDR:2:4:0 4xFDR10:2:4:0 4xFDR:2:4:1 \
		8xEDR:4:4:2 4xHDR:2:4:4 4xNDR:2:4:8 4xXDR:2:4:16 12xNDR:8:4:8; do
		IFS=: read -r name width speed ext <<<"$rate"
		printf 'Ca 1 "a"\n[1] "b"[1] # lid 0 lmc 0 "b" lid 0 %s\n\nCa 1 "b"\n[1] "a"[1] # lid 0 lmc 0 "a" lid 0 %s s=%s w=%s v=8\n' \
			"$name" "$name" "$speed" "$width" >"$TMP/t.net"
		show "$TMP/t.net"
		port a 1 " w=[0-9]+/$width s=[0-9]+/$speed e=[0-9]+/$ext "
		[ "$name" = 4xFDR10 ] || {
			run ctest topology dump "$TMP/t.net"
			assert_line "lid 0 $name\$"
		}
	done
}

@test "ibsim's rates where nothing is said: 4x SDR" {
	printf 'Ca 1 "a"\n[1] "b"\nCa 1 "b"\n[1] "a"\n' >"$TMP/t.net"
	show "$TMP/t.net"
	port a 1 ' w=2/2 s=1/1 e=0/0 to=b\[1\]'
}

@test "modules and aliases" {
	show "$ALL"
	port mod#a 1 ' to=mod#b\[1\]'
	port mod#a 2 ' to=other#x\[2\]'
	port other#x 3 ' to=mod#a\[3\]'
	port S-0008f10500000010 6 ' to=S2\[6\]'
	# The port that bears the alias has its own line's rate.
	port S2 6 ' w=3/2 s=7/4 e=7/2 '
}

@test "commands" {
	show "$ALL"
	assert_line '^H7 .* guid=77 sysimg='
	port H7 1 ' guid=78 lid=100 lmc=1 .* to=S2\[8\]'
	port S2 4 ' to=S-0008f10500000010\[4\] down '
	port S2 8 ' symbol_errors=12 xmit_data=4294967296$'
	port mod#a 1 ' drop=0.05 '
	port mod#b 1 ' drop=0.05 '
	port other#x 1 ' to=S2\[7\]'
	run ctest topology load "$ALL"
	assert_line '^8 nodes, 11 links, 10 up$'
}

@test "unplug, plug in again, clear" {
	local net='Switch 4 "s"\n[1] "a"[1]\n[2] "b"[1]\n\nCa 1 "a"\n[1] "s"[1] # lid 5 lmc 0 "s" lid 2 4xSDR\n\nCa 1 "b"\n[1] "s"[2]\n'
	printf "${net}do Unlink \"s\"\ndo ReLink \"s\"[1]\n" >"$TMP/t.net"
	show "$TMP/t.net"
	port a 1 ' lid=5 .*to=s\[1\] drop'
	port b 1 ' to=s\[2\] down'
	printf "${net}do Clear \"a\"\ndo unlink \"b\"[1]\ndo LINK \"s\"[1] \"b\"[1]\n" >"$TMP/t.net"
	show "$TMP/t.net"
	port a 1 ' lid=0 '
	port b 1 ' to=s\[1\] drop'
}

@test "what is written reads as what was read" {
	local file
	ctest gentopo fat3 3 8 >"$TMP/fat.net"
	ctest gentopo torus 3 3 2 2 >"$TMP/torus.net"
	for file in "$ALL" "$TOP"/conf/*.net "$TMP/fat.net" "$TMP/torus.net"; do
		ctest topology dump "$file" >"$TMP/1"
		ctest topology dump "$TMP/1" >"$TMP/2"
		cmp "$TMP/1" "$TMP/2" || fail "not the same: $file"
		[ "$(ctest topology load "$file" | sed 's/.*, //')" = \
			"$(ctest topology load "$TMP/1" | sed 's/.*, //')" ] || fail "links lost: $file"
	done
}

@test "the format is ibnetdiscover's to the letter" {
	cat >"$TMP/t.net" <<-'EOF'
	
	vendid=0x2c9
	devid=0xd2f0
	sysimgguid=0xec0d9a0300a1b2c0
	switchguid=0xec0d9a0300a1b2c0(ec0d9a0300a1b2c0)
	Switch	36 "S-ec0d9a0300a1b2c0"		# "SwitchX -  Mellanox" enhanced port 0 lid 3 lmc 0
	[1]	"H-248a0703009c5a10"[1](248a0703009c5a10) 		# "node1 mlx5_0" lid 1 4xEDR
	[36]	"H-248a0703009c5a20"[1](248a0703009c5a20) 		# "node2 mlx5_0" lid 2 4xEDR
	
	vendid=0x2c9
	devid=0x1013
	sysimgguid=0x248a0703009c5a10
	caguid=0x248a0703009c5a10
	Ca	1 "H-248a0703009c5a10"		# "node1 mlx5_0"
	[1](248a0703009c5a10) 	"S-ec0d9a0300a1b2c0"[1]		# lid 1 lmc 0 "SwitchX -  Mellanox" lid 3 4xEDR
	
	vendid=0x2c9
	devid=0x1013
	sysimgguid=0x248a0703009c5a20
	caguid=0x248a0703009c5a20
	Ca	1 "H-248a0703009c5a20"		# "node2 mlx5_0"
	[1](248a0703009c5a20) 	"S-ec0d9a0300a1b2c0"[36]		# lid 2 lmc 0 "SwitchX -  Mellanox" lid 3 4xEDR
	EOF
	ctest topology dump "$TMP/t.net" | sed 1,3d | diff "$TMP/t.net" -
}

@test "headings and remarks of ibnetdiscover -g and -f" {
	cat >"$TMP/t.net" <<-'EOF'
	#
	# Topology file: generated on Sat Nov 21 03:00:00 2026
	#
	Chassis 1 (guid 0x8f10400410015)
	Hostname: rack one
	# Spine Nodes
	vendid=0x8f1
	devid=0x5a30
	sysimgguid=0x8f10400410015		# Chassis 1 slot 3
	switchguid=0x8f10400410015(8f10400410015)	# Spine 1 Chip 1
	Switch	24 "S-0008f10400410015"		# "ISR9024" base port 0 lid 6 lmc 0
	[1][ext 7]	"H-0008f10403960558"[1](8f10403960559) 		# "h" lid 2 4xDDR s=2 w=2 v=4
	
	Non-Chassis Nodes
	
	caguid=0x8f10403960558
	Ca	2 "H-0008f10403960558"		# "h" (scp)
	[1](8f10403960559) 	"S-0008f10400410015"[1][ext 7]		# lid 2 lmc 0 "ISR9024" lid 6 4xDDR s=2 w=2 v=4
	EOF
	show "$TMP/t.net"
	port H-0008f10403960558 1 ' guid=8f10403960559 lid=2 .* s=3/2 .*to=S-0008f10400410015\[1\]'
}

@test "ibsim loads what is written" {
	need_tool ibsim
	local file
	ctest gentopo fat2 3 4 2 8 >"$TMP/fat.net"
	for file in "$TOP"/conf/*.net "$TMP/fat.net"; do
		ctest topology dump "$file" >"$TMP/dump.net"
		# Its console spins at the end of its input.
		mkfifo "$TMP/console"
		IBSIM_SOCKNAME=topology-test-$$ timeout 20 ibsim -s "$TMP/dump.net" \
			>"$TMP/log" 2>&1 <>"$TMP/console" 3>&- &
		local pid=$!
		wait_for -t 15 grep -q -e 'parsed' -e panic "$TMP/log"
		wait_for -t 15 grep -q -e 'Network simulator ready' -e panic "$TMP/log" || true
		kill "$pid" 2>/dev/null || true
		wait "$pid" || true
		rm "$TMP/console"
		! grep -e fatal -e panic -e 'not connected' "$TMP/log" || fail "$file"
		grep -q ': parsed' "$TMP/log"
	done
}

@test "ibsim's own examples" {
	local dir file
	dir=$(find /usr/share/doc -maxdepth 2 -path '*ibsim*' -name net-examples | head -1)
	[ -n "$dir" ] || skip "ibsim's examples are not installed"
	for file in "$dir"/net*; do
		case $file in
		*.gz) zcat "$file" >"$TMP/t.net" ;;
		*) cp "$file" "$TMP/t.net" ;;
		esac
		run ctest topology routes "$TMP/t.net"
		assert_status 0
		assert_line ' 0 wrong$'
	done
}

@test "line ends of other systems, long lines, no last newline, records without a blank line" {
	sed 's/$/\r/' "$ALL" >"$TMP/crlf.net"
	diff <(ctest topology show "$ALL") <(ctest topology show "$TMP/crlf.net")
	grep -v '^$' "$ALL" >"$TMP/dense.net"
	diff <(ctest topology show "$ALL") <(ctest topology show "$TMP/dense.net")
	local long
	long=$(printf '%0100000d' 0)
	printf 'Ca 1 "a" # "%s"\n[1] "b"[1] # %s\n# %s\nCa 1 "b"\n[1] "a"[1]' "$long" "$long" "$long" \
		>"$TMP/long.net"
	show "$TMP/long.net"
	assert_line '^a .* desc=0{64}$'
	port b 1 ' to=a\[1\]'
}

@test "includes are found beside the file that includes them" {
	mkdir -p "$TMP/d/e"
	printf 'include "d/hosts.net"\n\nSwitch 4 "s"\n[1] "a"\n[2] "b"\n' >"$TMP/t.net"
	printf 'include "e/b.net"\n# mine\nCa 1 "a"\n[1] "s"[1]\n' >"$TMP/d/hosts.net"
	printf 'Ca 1 "b"\n[1] "s"[2]' >"$TMP/d/e/b.net"
	show "$TMP/t.net"
	port s 1 ' to=a\[1\]'
	port s 2 ' to=b\[1\]'
	# The same file twice under two modules' names.
	printf 'Ca 2 "x"\n[1] "y"\n@[2] "out"\n\nCa 1 "y"\n[1] "x"[1]\n' >"$TMP/pair.net"
	printf 'module="l"\ninclude "pair.net"\nmodule="r"\ninclude "pair.net"\nmodule="m"\nSwitch 2 "s"\n[1] "l@out"\n[2] "r@out"\n' \
		>"$TMP/two.net"
	show "$TMP/two.net"
	port m#s 1 ' to=l#x\[2\]'
	port m#s 2 ' to=r#x\[2\]'
}

@test "from a pipe" {
	mkfifo "$TMP/pipe"
	cat "$ALL" >"$TMP/pipe" 3>&- &
	run ctest topology load "$TMP/pipe"
	assert_status 0
	assert_line '^8 nodes'
}

@test "spoilt files give a fabric or one line of error" {
	ctest topology fuzz "$ALL" 1 20000
	ctest topology fuzz "$TOP/conf/dual-port.net" 2 10000
	ctest topology fuzz "$TOP/conf/fat-tree.net" 3 5000
}

@test "the default fabric" {
	ctest topology default
}

@test "names that the format can't hold are written as ibnetdiscover's" {
	ctest topology names >"$TMP/1"
	ctest topology dump "$TMP/1" >"$TMP/2"
	show "$TMP/2"
	port S-0000000000200000 1 ' to=H-0000000000100000\[1\]'
	port S-0000000000200000 4 ' to=m#h\[1\]'
	port S-0000000000200000 6 ' to=k l\[1\]'
	[ "$(ctest topology load "$TMP/1")" = "8 nodes, 7 links, 7 up" ]
}
