#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# Broken topology files: the answer is one line that names the file, the line,
# what was wrong and what was expected.

# shellcheck disable=SC2059	# records hold printf's escapes
load helpers

# wrong LINE REGEX TEXT: a file with TEXT (printf's escapes) is refused so.
wrong()
{
	local line=$1 regex=$2
	printf "$3" >"$BATS_TEST_TMPDIR/t.net"
	run ctest topology load "$BATS_TEST_TMPDIR/t.net"
	assert_status 1
	[ "${#lines[@]}" = 1 ] || fail "more than a line:" "$output"
	assert_line "^$BATS_TEST_TMPDIR/t.net:$line: $regex"
}

# One cable, whole.
PAIR='Ca 1 "a"\n[1] "b"[1]\n\nCa 1 "b"\n[1] "a"[1]\n'

@test "the files that the others are broken copies of are right" {
	printf "$PAIR" >"$BATS_TEST_TMPDIR/t.net"
	run ctest topology load "$BATS_TEST_TMPDIR/t.net"
	assert_status 0
	assert_line '^2 nodes, 1 links, 1 up$'
}

@test "unknown lines" {
	wrong 1 "expected a record .*found 'Swich 8 \"a\"'" 'Swich 8 "a"\n'
	wrong 2 "expected a record .*found 'switch 8" '\nswitch 8 "a"\n'
	wrong 1 "expected a record .*found '}" '}\n'
	wrong 6 "expected a record .*found 'xyz'" "${PAIR}xyz\n"
	wrong 1 "expected a Switch, Ca, Hca or Rt line before" '[1] "b"[1]\n'
	wrong 7 "expected a Switch, Ca, Hca or Rt line before" "$PAIR\n[2] \"a\"[1]\n"
	wrong 1 "expected text, found a NUL byte" 'Ca\0 1 "a"\n'
	wrong 1 "expected a Switch, Ca, Hca or Rt record, found none" ''
	wrong 2 "expected a Switch, Ca, Hca or Rt record, found none" '# only\n\n'
}

@test "a node's first line" {
	wrong 1 "number of ports: expected a number, found '\"a\"'" 'Ca "a"\n'
	wrong 1 "number of ports: expected 1 to 254, found '0 \"a\"'" 'Ca 0 "a"\n'
	wrong 1 "number of ports: expected 1 to 254, found '255" 'Switch 255 "a"\n'
	wrong 1 "number of ports: expected a number, found '-1" 'Ca -1 "a"\n'
	wrong 1 "number of ports: expected a number, found '2x" 'Ca 2x "a"\n'
	wrong 1 "number of ports: expected 1 to 254, found '999999999999999999999" \
		'Ca 999999999999999999999 "a"\n'
	wrong 1 "expected the node's name in double quotes, found 'a'" 'Ca 1 a\n'
	wrong 1 "expected the node's name in double quotes, found the end" 'Ca 1\n'
	wrong 1 "expected a double quote after the node's name, found none" 'Ca 1 "a\n'
	wrong 1 "expected a node's name of 1 to .*without # and @, found 'x#a'" 'Ca 1 "x#a"\n'
	wrong 1 "expected a node's name of .*found 'a@b'" 'Ca 1 "a@b"\n'
	wrong 1 "expected a node's name of .*found the end" 'Ca 1 ""\n'
	wrong 1 "expected a node's name of .*found 'a\?b'" 'Ca 1 "a\001b"\n'
	wrong 1 "expected a node's name of 1 to [0-9]+ .*found 'x{39}\.\.\.'" \
		"Ca 1 \"$(printf 'x%.0s' {1..200})\"\n"
	wrong 1 "lid: expected 1 to 49151, found 49152" 'Switch 8 "s" # "s" base port 0 lid 49152 lmc 0\n'
	wrong 1 "lmc: expected 0 to 7, found '8'" 'Switch 8 "s" # "s" base port 0 lid 1 lmc 8\n'
}

@test "names and GUIDs that are there already" {
	wrong 3 "node \"a\" has the same name as \"a\" in .*t.net:1" 'Ca 1 "a"\n\nCa 1 "a"\n'
	wrong 4 "node \"b\" has the same GUID as \"a\" in .*t.net:2" \
		'caguid=0x10\nCa 1 "a"\ncaguid=0x10\nCa 1 "b"\n'
	wrong 4 "node \"b\" has the same GUID" 'caguid=5\nCa 1 "a"\nswitchguid=5\nSwitch 1 "b"\n'
	wrong 4 "port \"b\"\[1\] has GUID 0x12, which \"a\"\[2\] has from .*t.net:2" \
		'caguid=0x10\nCa 2 "a"\ncaguid=0x11\nCa 1 "b"\n'
	wrong 4 "port \"b\"\[1\] has GUID 0x77, which \"a\"\[1\] has from .*t.net:2" \
		'Ca 1 "a"\n[1](77) "b"[1]\nCa 1 "b"\n[1](77) "a"[1]\n'
	wrong 2 "\"b\"\[1\] has GUID \(78\) here, \(79\) in .*t.net:4" \
		'Switch 1 "a"\n[1] "b"[1](78)\nCa 1 "b"\n[1](79) "a"[1]\n'
}

@test "no port has GUID 0, and messages hold no control characters" {
	wrong 2 "\"a\"\[1\]: expected a GUID other than 0" 'caguid=0xffffffffffffffff\nCa 1 "a"\n'
	wrong 2 "expected a record of node \"b\?\[7m\", found none" 'Ca 1 "a"\n[1] "b\033[7m"[1]\n'
}

@test "settings" {
	wrong 1 "GUID: expected a number, found 'x'" 'caguid=x\n'
	wrong 1 "GUID: expected 1 to 18446744073709551615, found '0'" 'caguid=0\n'
	wrong 1 "GUID: expected 1 to 18446744073709551615, found '0x10000000000000000'" \
		'switchguid=0x10000000000000000\n'
	wrong 1 "expected '=' or '\+' before the GUID, found '0x10'" 'caguid 0x10\n'
	wrong 1 "expected a GUID as \(hexadecimal\), found '\(zz\)'" 'switchguid=0x10(zz)\n'
	wrong 1 "expected the end of the line or a comment, found 'junk'" 'switchguid=0x10 junk\n'
	wrong 1 "expected '=' after vendid, found '0x2c9'" 'vendid 0x2c9\n'
	wrong 1 "vendid: expected 0 to 16777215, found '0x1000000'" 'vendid=0x1000000\n'
	wrong 1 "devid: expected 0 to 65535, found '65536'" 'devid=65536\n'
	wrong 1 "sysimgguid: expected a number, found the end of the line" 'sysimgguid=\n'
	wrong 1 "width: expected 1 to 31, found '0'" 'width=0\n'
	wrong 1 "width: expected 1 to 31, found '32'" 'width=32\n'
	wrong 1 "speed: expected 1 to 7, found '8'" 'speed=8\n'
	wrong 1 "extspeed: expected 0 to 31, found '32'" 'extspeed=32\n'
	wrong 1 "expected the module's name in double quotes" 'module=m\n'
	wrong 1 "expected a module's name of up to 20" 'module="123456789012345678901"\n'
	wrong 1 "expected a module's name of up to 20" 'module="a#b"\n'
}

@test "a port's line" {
	wrong 2 "port: expected a number, found 'x\]" 'Ca 1 "a"\n[x] "b"\n'
	wrong 2 "port: expected 1 to 1, found '2\]" 'Ca 1 "a"\n[2] "b"\n'
	wrong 2 "port: expected 1 to 8, found '0\]" 'Switch 8 "a"\n[0] "b"\n'
	wrong 2 "expected '\]' after the port number, found '\"b\"'" 'Ca 1 "a"\n[1 "b"\n'
	wrong 2 "expected the other end's name in double quotes, found 'b'" 'Ca 1 "a"\n[1] b\n'
	wrong 2 "expected the other end's name in double quotes, found the end" 'Ca 1 "a"\n[1]\n'
	wrong 2 "expected a double quote after the other end's name" 'Ca 1 "a"\n[1] "b\n'
	wrong 2 "expected a GUID as \(hexadecimal\), found '\(\)" 'Ca 1 "a"\n[1]() "b"\n'
	wrong 2 "expected a GUID as \(hexadecimal\), found '\(0\)" 'Ca 1 "a"\n[1](0) "b"\n'
	wrong 2 "expected a GUID as .*found '\(12345678901234567\)" \
		'Ca 1 "a"\n[1](12345678901234567) "b"\n'
	wrong 2 "expected no GUID at a switch's port" 'Switch 1 "a"\n[1](5) "b"\n'
	wrong 2 "the other end's port: expected 1 to 254, found '0\]'" 'Ca 1 "a"\n[1] "b"[0]\n'
	wrong 2 "the other end's port: expected a number, found '\]'" 'Ca 1 "a"\n[1] "b"[]\n'
	wrong 2 "expected w=, s=, e= or a comment, found 'x=1'" 'Ca 1 "a"\n[1] "b"[1] x=1\n'
	wrong 2 "expected w=, s=, e= or a comment, found '4xEDR'" 'Ca 1 "a"\n[1] "b"[1] 4xEDR\n'
	wrong 2 "w: expected 1 to 31, found '32'" 'Ca 1 "a"\n[1] "b"[1] w=32\n'
	wrong 2 "s: expected 0 to 7, found '8'" 'Ca 1 "a"\n[1] "b"[1] s=8\n'
	wrong 2 "e: expected a number, found 'EDR'" 'Ca 1 "a"\n[1] "b"[1] e=EDR\n'
	wrong 3 "port 1 was given before, in .*t.net:2" 'Ca 2 "a"\n[1] "b"[1]\n[1] "c"[1]\n'
	wrong 2 "expected a node's name of 1 to" 'Ca 1 "a"\n[1] ""[1]\n'
}

@test "what ibnetdiscover notes behind a port" {
	wrong 2 "expected a speed of SDR, .*found FOO" 'Ca 1 "a"\n[1] "b"[1] # lid 0 lmc 0 "b" lid 2 4xFOO\n'
	wrong 2 "expected a width of 1x, .*found 3x" 'Ca 1 "a"\n[1] "b"[1] # "b" lid 2 3xEDR\n'
	wrong 2 "lid: expected 1 to 49151, found 50000" \
		'Ca 1 "a"\n[1] "b"[1] # lid 50000 lmc 0 "b" lid 2 4xEDR\n'
	wrong 2 "lmc: expected 0 to 7, found 9" 'Ca 1 "a"\n[1] "b"[1] # lid 5 lmc 9 "b" lid 2 4xEDR\n'
}

@test "links that don't agree" {
	wrong 2 "expected a record of node \"b\", found none" 'Ca 1 "a"\n[1] "b"[1]\n'
	wrong 2 "the other end's port: expected 1 to 1, which \"b\" has, found 2" \
		'Ca 1 "a"\n[1] "b"[2]\n\nCa 1 "b"\n'
	wrong 2 "\"b\"\[1\] doesn't say that it is linked: expected \[1\] \"a\"\[1\] in its record" \
		'Ca 1 "a"\n[1] "b"[1]\n\nCa 1 "b"\n'
	wrong 2 "\"b\"\[1\] is linked to \"c\"\[1\] in .*t.net:5, expected \"a\"\[1\]" \
		'Ca 1 "a"\n[1] "b"[1]\n\nCa 1 "b"\n[1] "c"[1]\n\nCa 1 "c"\n[1] "b"[1]\n'
	wrong 2 "\"b\"\[1\] is linked to \"a\"\[2\] in .*t.net:5, expected \"a\"\[1\]" \
		'Ca 2 "a"\n[1] "b"[1]\n\nCa 1 "b"\n[1] "a"[2]\n'
	wrong 2 "\"a\"\[1\] can't be linked to itself" 'Ca 1 "a"\n[1] "a"[1]\n'
	wrong 2 "\"a\"\[1\] \(w=1 s=1 e=0\) and \"b\"\[1\] \(w=2 s=1 e=0\): expected a common" \
		'Ca 1 "a"\n[1] "b"[1] w=1\n\nCa 1 "b"\n[1] "a"[1]\n'
	wrong 2 ".*: expected a common width and speed" \
		'Ca 1 "a"\n[1] "b"[1] s=4\n\nCa 1 "b"\n[1] "a"[1]\n'
}

@test "aliases" {
	wrong 2 "expected a port that bears the alias \"@x\", found none" 'Ca 1 "a"\n[1] "@x"\n'
	wrong 4 "alias \"x\" is taken in .*t.net:2" 'Ca 1 "a"\n@[1] "x"\nCa 1 "b"\n@[1] "x"\n'
	wrong 2 "expected an alias of 1 to .*found \"x#y\"" 'Ca 1 "a"\n@[1] "x#y"\n'
	wrong 2 "expected an alias in double quotes, found 'x'" 'Ca 1 "a"\n@[1] x\n'
	wrong 2 "expected \[port number\], found '1 \"x\"'" 'Ca 1 "a"\n@1 "x"\n'
	wrong 6 "\"c\"\[1\] is linked already" \
		'Ca 1 "c"\n@[1] "x"\nCa 1 "a"\n[1] "@x"\nCa 1 "b"\n[1] "@x"\n'
	wrong 2 "expected a port that bears the alias \"m@x\"" 'Ca 1 "a"\n[1] "m@x"\nmodule="n"\nCa 1 "b"\n@[1] "x"\n'
}

@test "includes" {
	wrong 1 "can't open .*/no-such-file: No such file" 'include "no-such-file"\n'
	wrong 1 "expected a file's name in double quotes" 'include x\n'
	wrong 1 "expected the end of the line or a comment, found 'y'" 'include "x" y\n'
	wrong 2 ".*/t.net includes itself" '\ninclude "t.net"\n'
	wrong 1 "/dev/zero: expected a file or a pipe" 'include "/dev/zero"\n'
	wrong 1 ".*: expected a file or a pipe" 'include "."\n'
}

@test "an error in an include names the include" {
	mkdir -p "$BATS_TEST_TMPDIR/d"
	printf 'include "d/inner.net"\n' >"$BATS_TEST_TMPDIR/outer.net"
	printf '\ninclude "leaf.net"\n' >"$BATS_TEST_TMPDIR/d/inner.net"
	printf 'Ca 1 "a"\n\nCa 1 "a"\n' >"$BATS_TEST_TMPDIR/d/leaf.net"
	run ctest topology load "$BATS_TEST_TMPDIR/outer.net"
	assert_status 1
	assert_line "^$BATS_TEST_TMPDIR/d/leaf.net:3: node \"a\" has the same name"
}

@test "includes in a ring, and too deep" {
	printf 'include "b.net"\n' >"$BATS_TEST_TMPDIR/a.net"
	printf 'include "a.net"\n' >"$BATS_TEST_TMPDIR/b.net"
	run ctest topology load "$BATS_TEST_TMPDIR/a.net"
	assert_status 1
	assert_line "b.net:1: .*a.net includes itself"
	for i in {1..20}; do
		printf 'include "%d.net"\n' $((i + 1)) >"$BATS_TEST_TMPDIR/$i.net"
	done
	printf "$PAIR" >"$BATS_TEST_TMPDIR/21.net"
	run ctest topology load "$BATS_TEST_TMPDIR/1.net"
	assert_status 1
	assert_line "10.net:1: includes are nested deeper than 9"
	run ctest topology load "$BATS_TEST_TMPDIR/12.net"
	assert_status 0
}

@test "commands" {
	wrong 6 "expected Link, .* after do, found 'Quit'" "${PAIR}do Quit\n"
	wrong 6 "expected Link, .* after do, found 'Lin" "${PAIR}do Lin \"a\"\n"
	wrong 6 "expected a node's name in double quotes, found 'a'" "${PAIR}do Unlink a\n"
	wrong 6 "expected a record of node \"c\", found none" "${PAIR}do Unlink \"c\"\n"
	wrong 6 "port: expected 1 to 1, which \"a\" has, found 2" "${PAIR}do Unlink \"a\"[2]\n"
	wrong 6 "expected a link at \"c\", found none" "${PAIR}do Unlink \"c\"\nCa 1 \"c\"\n"
	wrong 6 "\"a\"\[1\] is linked already" "${PAIR}do Link \"a\"[1] \"c\"[1]\nCa 1 \"c\"\n"
	wrong 6 "expected \[port number\] after \"a\"" "${PAIR}do Link \"a\" \"b\"[1]\n"
	wrong 6 "error rate: expected 0 to 100, found '101'" "${PAIR}do Error \"a\" 101\n"
	wrong 6 "error rate: expected 0 to 100, found the end" "${PAIR}do Error \"a\"\n"
	wrong 6 "expected an error rate only" "${PAIR}do Error \"a\" 5 16\n"
	wrong 6 "lid: expected 1 to 49151, found '0'" "${PAIR}do Baselid \"a\"[1] 0\n"
	wrong 6 "lmc: expected 0 to 7, found '8'" "${PAIR}do Baselid \"a\"[1] 4 8\n"
	wrong 6 "expected port 0 of a switch, found 1" \
		"${PAIR}do Baselid \"s\"[1] 4\nSwitch 2 \"s\"\n"
	wrong 6 "GUID: expected 1 to .*found 'x'" "${PAIR}do Guid \"a\" x\n"
	wrong 6 "node \"b\" has GUID 0x100002" "${PAIR}do Guid \"a\" 0x100002\n"
	wrong 6 "expected a field of PortCounters or .*found PortCounters.Nothing" \
		"${PAIR}do PerformanceSet \"a\"[1] PortCounters.Nothing=1\n"
	wrong 6 "expected ATTRIBUTE.FIELD=VALUE, found 'PortCounters'" \
		"${PAIR}do PerformanceSet \"a\"[1] PortCounters\n"
	wrong 6 "SymbolErrorCounter: expected 0 to .*found 'x'" \
		"${PAIR}do PerformanceSet \"a\"[1] PortCounters.SymbolErrorCounter=x\n"
}

@test "files that aren't there, and what is no file" {
	run ctest topology load "$BATS_TEST_TMPDIR/none.net"
	assert_status 1
	assert_line "none.net: can't open: No such file or directory"
	run ctest topology load "$BATS_TEST_TMPDIR"
	assert_status 1
	assert_line "expected a file or a pipe"
	run ctest topology load /dev/zero
	assert_status 1
	assert_line "/dev/zero: expected a file or a pipe"
}
