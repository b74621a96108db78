# SPDX-License-Identifier: BSD-2-Clause
# Configurations that are wrong: each error is one line with file and line, and
# says what was expected. The daemon ends with status 1 and mounts nothing.
load helpers

setup()
{
	[ -w /dev/fuse ] || skip "no /dev/fuse here"
	DIR=$BATS_TEST_TMPDIR
	mkdir "$DIR/mnt"
}

teardown()
{
	! mountpoint -q "$DIR/mnt" || { umount "$DIR/mnt"; fail "left mounted"; }
}

# refused LINE TEXT: the configuration on standard input has an error there.
refused()
{
	cat >"$DIR/t.conf"
	run -1 "$BUILD/ibfs" -c "$DIR/t.conf" "$DIR/mnt"
	[ "${#lines[@]}" = 1 ] || fail "not one line:" "$output"
	[[ $output == "ibfs: $DIR/t.conf:$1: "*"$2"* ]] || fail "expected $1: $2" "got: $output"
}

@test "a syntax error" {
	refused 2 "expected \`name = value;\`" <<-'END'
	subnet = "sm";
	devices = ( { name = "rxe0" ) };
	END
}

@test "a string that is not closed" {
	refused 2 "expected" <<<'subnet = "sm;'
}

@test "a setting that is unknown" {
	refused 3 'unknown setting "subnets": expected one of subnet, topology, switches' <<-'END'

	# nothing else
	subnets = "sm";
	END
}

@test "a setting given twice" {
	refused 2 'duplicate setting' <<-'END'
	subnet = "sm";
	subnet = "sm";
	END
}

@test "subnet: another word" {
	refused 1 'subnet: expected "static" or "sm", found "dynamic"' <<<'subnet = "dynamic";'
}

@test "subnet: a number" {
	refused 1 'subnet: expected "static" or "sm", found 3' <<<'subnet = 3;'
	refused 1 'realtime: expected true or false, found 1' <<<'realtime = 1;'
}

@test "subnet: true" {
	refused 1 'found true' <<<'subnet = true;'
}

@test "topology: not a string" {
	refused 1 'topology: expected a file name, found 5' <<<'topology = 5;'
}

@test "topology: empty" {
	refused 1 'topology: expected a file name, found ""' <<<'topology = "";'
}

@test "topology: a file that is missing, relative to the configuration" {
	printf 'topology = "none.net";\n' >"$DIR/t.conf"
	run -1 "$BUILD/ibfs" -c "$DIR/t.conf" "$DIR/mnt"
	[ "${#lines[@]}" = 1 ]
	[[ $output == *"$DIR/none.net"*"No such file"* ]] || fail "$output"
}

@test "switches: not a list" {
	refused 1 'switches: expected a list' <<<'switches = { name = "a"; };'
}

@test "switches: an element that is not a group" {
	refused 1 'switches[0]: expected a group { }, found "a"' <<<'switches = ( "a" );'
}

@test "switches: without ports" {
	refused 2 'switches[0]: expected a setting "ports"' <<-'END'
	switches = (
	    { name = "a"; }
	);
	END
}

@test "switches: without a name" {
	refused 1 'switches[0]: expected a setting "name"' <<<'switches = ( { ports = 4; } );'
}

@test "switches: too many ports" {
	refused 1 'switches[0].ports: expected a number from 1 to 254, found 255' \
		<<<'switches = ( { name = "a"; ports = 255; } );'
}

@test "switches: no port" {
	refused 1 'switches[0].ports: expected a number from 1 to 254, found 0' \
		<<<'switches = ( { name = "a"; ports = 0; } );'
}

@test "switches: a negative number of ports" {
	refused 1 'found -4' <<<'switches = ( { name = "a"; ports = -4; } );'
}

@test "switches: ports that are not a number" {
	refused 1 'expected a number from 1 to 254, found "4"' \
		<<<'switches = ( { name = "a"; ports = "4"; } );'
}

@test "switches: half a port" {
	refused 1 'expected a number from 1 to 254, found 1.5' \
		<<<'switches = ( { name = "a"; ports = 1.5; } );'
}

@test "switches: a name that is empty" {
	refused 1 'switches[0].name: expected a string of 1 to 64 characters' \
		<<<'switches = ( { name = ""; ports = 4; } );'
}

@test "switches: a name that is too long" {
	refused 1 'switches[0].name: expected a string of 1 to 64 characters' \
		<<<"switches = ( { name = \"$(printf 'x%.0s' {1..65})\"; ports = 4; } );"
}

@test "switches: an unknown setting" {
	refused 3 'unknown setting "port": expected one of name, ports, guid, desc' <<-'END'
	switches = (
	    { name = "a";
	      port = 4; } );
	END
}

@test "switches: the same name twice" {
	refused 3 'a node "a" is there already' <<-'END'
	switches = (
	    { name = "a"; ports = 4; },
	    { name = "a"; ports = 4; } );
	END
}

@test "switches: the same GUID twice" {
	refused 2 'GUID 0x0000000000000010 is node "a" already' <<-'END'
	switches = ( { name = "a"; ports = 4; guid = "0x10"; },
	             { name = "b"; ports = 4; guid = "0x10"; } );
	END
}

@test "guid: not a number" {
	refused 1 'guid: expected a GUID such as' \
		<<<'switches = ( { name = "a"; ports = 4; guid = "hello"; } );'
}

@test "guid: zero" {
	refused 1 'guid: expected a GUID such as' \
		<<<'switches = ( { name = "a"; ports = 4; guid = "0"; } );'
}

@test "guid: more than 64 bits" {
	refused 1 'guid: expected a GUID such as' \
		<<<'switches = ( { name = "a"; ports = 4; guid = "0x10002c90300000001"; } );'
}

@test "guid: something behind it" {
	refused 1 'guid: expected a GUID such as' \
		<<<'switches = ( { name = "a"; ports = 4; guid = "0x10 "; } );'
}

@test "desc: too long" {
	refused 1 'hcas[0].desc: expected a string of 0 to 64 characters' \
		<<<"hcas = ( { name = \"a\"; desc = \"$(printf 'x%.0s' {1..65})\"; } );"
}

@test "links: an end is missing" {
	refused 1 'links[0]: expected a setting "b"' <<<'links = ( { a = "x[1]"; } );'
}

@test "links: an end without a port's number" {
	refused 1 'links[0].a: expected a node and its port, such as "switch0[1]", found "x[]"' \
		<<<'links = ( { a = "x[]"; b = "y"; } );'
}

@test "links: an end with half a bracket" {
	refused 1 'links[0].b: expected a node and its port' \
		<<<'links = ( { a = "x[1]"; b = "y[1"; } );'
}

@test "links: port 0" {
	refused 1 'links[0].a: expected a node and its port' \
		<<<'links = ( { a = "x[0]"; b = "y[1]"; } );'
}

@test "links: port 255" {
	refused 1 'links[0].a: expected a node and its port' \
		<<<'links = ( { a = "x[255]"; b = "y[1]"; } );'
}

@test "links: a node that is not there" {
	refused 2 'no node "y"' <<-'END'
	hcas = ( { name = "x"; } );
	links = ( { a = "x[1]"; b = "y[1]"; } );
	END
}

@test "links: a port that is not there" {
	refused 2 '"x" has ports 1 to 1, no port 2' <<-'END'
	hcas = ( { name = "x"; }, { name = "y"; } );
	links = ( { a = "x[2]"; b = "y[1]"; } );
	END
}

@test "links: a port that is taken" {
	refused 3 'port "x[1]" has a link already' <<-'END'
	hcas = ( { name = "x"; }, { name = "y"; ports = 2; } );
	links = ( { a = "x[1]"; b = "y[1]"; },
	          { a = "y[2]"; b = "x[1]"; } );
	END
}

@test "links: a port with itself" {
	refused 2 'a link needs two ports' <<-'END'
	hcas = ( { name = "x"; } );
	links = ( { a = "x[1]"; b = "x"; } );
	END
}

@test "links: a width that there is not" {
	refused 2 'links[0].width: expected one of "1x", "2x", "4x", "8x", "12x", found "3x"' <<-'END'
	hcas = ( { name = "x"; ports = 2; } );
	links = ( { a = "x[1]"; b = "x[2]"; width = "3x"; } );
	END
}

@test "links: a speed that there is not" {
	refused 2 'links[0].speed: expected one of "SDR", "DDR"' <<-'END'
	hcas = ( { name = "x"; ports = 2; } );
	links = ( { a = "x[1]"; b = "x[2]"; speed = "10G"; } );
	END
}

@test "devices: without a name" {
	refused 1 'devices[0]: expected a setting "name"' <<<'devices = ( { node = "rxe0"; } );'
}

@test "devices: a name that is too long" {
	refused 1 'devices[0].name: expected a string of 1 to 19 characters' \
		<<<'devices = ( { name = "a2345678901234567890"; node = "rxe0"; } );'
}

@test "devices: a name with a slash" {
	refused 1 '"a/b": expected a name of 1 to 19 letters' \
		<<<'devices = ( { name = "a/b"; node = "rxe0"; } );'
}

@test "devices: a name that the tree needs itself" {
	refused 1 '"fabric" is a file of the tree itself: expected another name' \
		<<<'devices = ( { name = "fabric"; node = "rxe0"; } );'
}

@test "devices: a node that is not there" {
	refused 2 'no node "H9" for the device "rxe1"' <<-'END'
	devices = ( { name = "rxe0"; },
	            { name = "rxe1"; node = "H9"; } );
	END
}

@test "devices: the same name twice" {
	refused 2 'a device "rxe0" is there already' <<-'END'
	devices = ( { name = "rxe0"; },
	            { name = "rxe0"; node = "rxe1"; } );
	END
}

@test "devices: the same node twice" {
	refused 2 'node "rxe0" is another device already' <<-'END'
	devices = ( { name = "rxe0"; },
	            { name = "rxe1"; node = "rxe0"; } );
	END
}

@test "devices: a backend that there is not" {
	refused 1 'devices[0].backend: expected "soft" or "verbs", found "siw"' \
		<<<'devices = ( { name = "rxe0"; backend = "siw"; } );'
}

@test "files: not a group" {
	refused 1 'files: expected a group { }, found "0600"' <<<'files = "0600";'
}

@test "files: a mode that is a number" {
	refused 1 'files.umad: expected an octal mode in quotes, such as "0660", found 600' \
		<<<'files = { umad = 600; };'
}

@test "files: a mode that is not octal" {
	refused 1 'files.issm: expected an octal mode' <<<'files = { issm = "0690"; };'
}

@test "files: a mode with more than permissions" {
	refused 1 'files.uverbs: expected an octal mode' <<<'files = { uverbs = "4755"; };'
}

@test "files: a user that there is not" {
	refused 1 'files.uid: expected the name or the number of a user, found "no such"' \
		<<<'files = { uid = "no such"; };'
}

@test "files: a group that there is not" {
	refused 1 'files.gid: expected the name or the number of a group, found -1' \
		<<<'files = { gid = -1; };'
}

@test "files: an unknown setting" {
	refused 1 'unknown setting "mode": expected one of uid, gid, umad' \
		<<<'files = { mode = "0600"; };'
}

@test "limits: zero" {
	refused 1 'limits.errors: expected a number from 1 to 1000000, found 0' \
		<<<'limits = { errors = 0; };'
}

@test "limits: too much" {
	refused 1 'limits.events: expected a number from 1 to 1000000, found 5000000000' \
		<<<'limits = { events = 5000000000L; };'
}

@test "limits: an unknown setting" {
	refused 1 'unknown setting "lines": expected one of errors, events' \
		<<<'limits = { lines = 5; };'
}

@test "log: not a string" {
	refused 1 'log: expected a file name, found 1' <<<'log = 1;'
}

@test "log: a directory that is not there" {
	printf 'log = "no/such/log";\n' >"$DIR/t.conf"
	run -1 "$BUILD/ibfs" -c "$DIR/t.conf" "$DIR/mnt"
	[[ $output == "ibfs: log file $DIR/no/such/log: No such file or directory" ]] || fail "$output"
}

@test "an error in an included file has that file's name and line" {
	printf '\nsubnet = "x";\n' >"$DIR/more.conf"
	printf '@include "more.conf"\n' >"$DIR/t.conf"
	run -1 "$BUILD/ibfs" -c "$DIR/t.conf" "$DIR/mnt"
	[[ $output == "ibfs: "*"more.conf:2: subnet: expected"* ]] || fail "$output"
}

@test "an included file that is missing" {
	refused 1 "cannot open include file" <<<'@include "none.conf"'
}

@test "a configuration that is missing" {
	run -1 "$BUILD/ibfs" -c "$DIR/none.conf" "$DIR/mnt"
	[ "$output" = "ibfs: $DIR/none.conf: cannot read the configuration: No such file or directory" ]
}

@test "a configuration that is a directory" {
	run -1 "$BUILD/ibfs" -c "$DIR" "$DIR/mnt"
	[ "$output" = "ibfs: $DIR: cannot read the configuration: Is a directory" ]
}

@test "a configuration that may not be read" {
	need_root
	touch "$DIR/t.conf"
	chmod 0 "$DIR/t.conf"
	chmod 711 "$DIR"
	run -1 setpriv --reuid=65534 --clear-groups "$BUILD/ibfs" -c "$DIR/t.conf" "$DIR/mnt"
	[[ $output == *"Permission denied" ]] || fail "$output"
}

@test "a configuration of random bytes" {
	local i
	for i in {1..20}; do
		# The same each time: others may be a comment from the first byte to the last.
		python3 -c "import random, sys
sys.stdout.buffer.write(random.Random($i).randbytes(300))" >"$DIR/t.conf"
		run -1 "$BUILD/ibfs" -c "$DIR/t.conf" "$DIR/mnt"
		[ "${#lines[@]}" -ge 1 ]
	done
}

@test "the installed sample, uncommented, is right" {
	# What the sample says of each setting must be what the daemon takes.
	awk '/^# [a-z]+ = / { on = 1 }
	     on { print substr($0, 3) }
	     /^# [a-z]+ = .*;$/ || /^# [)}];$/ { on = 0 }' "$TOP/conf/ibfs.conf" |
		grep -v '^topology\|^log' >"$DIR/t.conf"
	grep -q 'subnet' "$DIR/t.conf"
	run -1 "$BUILD/ibfs" -c "$DIR/t.conf" "$DIR/mnt"
	# Everything was understood: what is left to say is that a node is missing.
	[[ $output == *'no node "'* ]] || fail "$output"
}
