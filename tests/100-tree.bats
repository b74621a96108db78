# SPDX-License-Identifier: BSD-2-Clause
# The tree as a whole: what is in it, the formats of its files, what can be
# written, and that a directory lists the same names for everybody.
load helpers

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

# Text files that a reader never waits for; of a far node one port's.
text_files()
{
	find "$MNT" -path '*/peer/ports/[1-9]' -prune -o -path '*/peer/*/peer' -prune -o \
		-type f -readable ! -name 'umad*' ! -name 'issm*' ! -name 'uverbs*' ! -name rdma_cm \
		! -name pcap ! -name events ! -name query ! -name ctl -print
}

# Each pattern must match all of the content of all files of this name, of those in $files.
check_format()	# NAME REGEX
{
	local file text n=0
	while read -r file; do
		n=$((n + 1))
		text=$(<"$file")
		[[ $text =~ ^$2$ ]] || fail "$file: \"$text\" is not $2" || return 1
	done < <(grep -E "$1" <<<"$files")
	[ "$n" -gt 0 ] || fail "no file $1"
}

@test "the root has what the manual says" {
	run -0 ls "$MNT"
	[ "$output" = $'README\naccounts\nah\ncq\ndev\nerrors\nevents\nfabric\nmcast\nmetrics\nmr\nmw\npd\npinned\nqp\nrxe0\nrxe1\nsrq\nsys\nversion\nxrcd' ]
	[ "$(cat "$MNT/version")" = "$("$BUILD/ibfs" -V | cut -d' ' -f2)" ]
	grep -q 'ibfs(5)' "$MNT/README"
}

@test "every text file can be read" {
	local file bad=0
	while read -r file; do
		cat "$file" >/dev/null 2>"$BATS_TEST_TMPDIR/err" && continue
		# As on Linux: an empty GID has no type, none has an interface.
		[[ $file == */gid_attrs/* ]] && grep -q 'Invalid argument' "$BATS_TEST_TMPDIR/err" &&
			continue
		cat "$BATS_TEST_TMPDIR/err" >&2
		bad=1
	done < <(text_files)
	[ $bad = 0 ]
}

@test "formats are those of Linux's sysfs" {
	local files
	files=$(text_files)
	check_format '/state$' '([1-5]: (DOWN|INIT|ARMED|ACTIVE|ACTIVE_DEFER)|up|down)'
	check_format '/phys_state$' '[1-7]: (Sleep|Polling|Disabled|PortConfigurationTraining|LinkUp|LinkErrorRecovery|Phy Test)'
	check_format '/rate$' '[0-9]+(\.5)? Gb/sec \((1|2|4|8|12)X (SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR)\)'
	check_format '/(lid|sm_lid)$' '0x[0-9a-f]+'
	check_format '/(lid_mask_count|sm_sl)$' '[0-9]+'
	check_format '/cap_mask$' '0x[0-9a-f]{8}'
	check_format '/link_layer$' 'InfiniBand'
	check_format '/gids/[0-9]+$' '([0-9a-f]{4}:){7}[0-9a-f]{4}'
	check_format '/pkeys/[0-9]+$' '0x[0-9a-f]{4}'
	check_format '/(node_guid|sys_image_guid|guid)$' '([0-9a-f]{4}:){3}[0-9a-f]{4}'
	check_format '/node_type$' '[1-3]: (CA|switch|router)'
	check_format '/counters/[^/]+$' '[0-9]+'
	check_format '/local_cpus$' '[0-9a-f]{8}(,[0-9a-f]{8})*'
	check_format '/infiniband_mad/abi_version$' '5'
	check_format '/infiniband_verbs/abi_version$' '6'
	check_format '/umad[0-9]+/dev$' '231:[0-9]+'
	check_format '/issm[0-9]+/dev$' '231:(6[4-9]|[7-9][0-9]|[1-9][0-9]{2})'
	check_format '/umad[0-9]+/port$' '[0-9]+'
	check_format '/umad[0-9]+/ibdev$' 'rxe[0-9]+'
	! is_soft || check_format '/peer$' '(none|[a-z0-9]+:[0-9]+)'
}

@test "several values are lines of a name and a value" {
	local file
	for file in "$MNT"/rxe0/attr "$MNT"/rxe0/1/attr "$SYSTEM_MNT"/fabric/*/*/attr; do
		run grep -vE '^[a-z0-9_]+ [^ ].*$' "$file"
		[ -z "$output" ] || fail "$file: $output"
	done
}

@test "sys/class shows the same values as the device" {
	local name
	for name in node_type node_guid sys_image_guid node_desc fw_ver hw_rev hca_type board_id; do
		cmp "$MNT/rxe1/$name" "$MNT/sys/class/infiniband/rxe1/$name"
	done
	for name in state phys_state rate lid lid_mask_count sm_lid sm_sl cap_mask link_layer \
		gids/0 pkeys/0 gid_attrs/types/0 counters/port_xmit_data; do
		cmp "$MNT/rxe1/1/$name" "$MNT/sys/class/infiniband/rxe1/ports/1/$name"
	done
	[ "$(ls "$MNT/sys/class/infiniband")" = $'rxe0\nrxe1' ]
	[ "$(ls "$MNT/sys/class/infiniband/rxe0/ports")" = 1 ]
	[ "$(cat "$MNT/sys/class/infiniband_mad/umad1/ibdev")" = rxe1 ]
	[ "$(ls -I 'uverbs*' "$MNT/dev/infiniband")" = $'ev\nissm0\nissm1\nrdma_cm\numad0\numad1' ]
	# Programs have the system's own.
	[ "$(find "$MNT/dev/infiniband" -name "uverbs*" | wc -l)" = "$(is_soft && echo 2 || echo 0)" ]
}

@test "gids and pkeys are numbered without a gap" {
	local dir
	for dir in gids pkeys gid_attrs/types; do
		[ "$(ls -v "$MNT/rxe0/1/$dir")" = "$(seq 0 31)" ]
	done
}

@test "a directory lists the same names each time, and each can be found" {
	find "$MNT" -printf '%i %y %p\n' >"$BATS_TEST_TMPDIR/one"
	find "$MNT" -printf '%i %y %p\n' >"$BATS_TEST_TMPDIR/two"
	cmp "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/two"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/one")" -gt 500 ]
}

@test "no two directories are one inode, and no entry is another one than its inode" {
	local dir name
	run -0 bash -c "find '$MNT' -type d -printf '%i\n' | sort | uniq -d"
	[ -z "$output" ]
	# What readdir says and what lstat says.
	for dir in rxe0/1 fabric sys/class/infiniband/rxe0; do
		for name in "$MNT/$dir"/*; do
			[ "$(find "$MNT/$dir" -mindepth 1 -maxdepth 1 -path "$name" -printf %i)" = \
				"$(stat -c %i "$name")" ]
		done
	done
}

@test "names that are not there" {
	local name
	for name in rxe9 rxe0/0 rxe0/2 rxe0/01 rxe0/1/gids/32 rxe0/1/gids/00 rxe0/1/pkeys/0x1 \
		rxe0/1/counters/none dev/infiniband/umad2 dev/infiniband/umad dev/infiniband/umad-1 \
		sys/class/infiniband_mad/issm9 fabric/switches/rxe0 fabric/nodes/switch \
		fabric/links/rxe0:1 fabric/links/switch:1-rxe0:1 fabric/nodes/rxe0/ports/0; do
		run stat "$MNT/$name"
		[ "$status" -ne 0 ]
		[[ $output == *'No such file or directory'* ]] || fail "$name: $output"
	done
}

@test "nothing can be made or removed where the tree is fixed" {
	run touch "$MNT/rxe0/new"
	[[ $output == *'Operation not permitted'* ]]
	run mkdir "$MNT/new"
	[[ $output == *'Operation not permitted'* ]]
	run rm "$MNT/rxe0/1/lid"
	[[ $output == *'Operation not permitted'* ]]
	run rmdir "$MNT/rxe0"
	[[ $output == *'Operation not permitted'* ]]
	run mkdir "$MNT/rxe0"
	[[ $output == *'File exists'* ]]
	run mv "$MNT/rxe0/1/lid" "$MNT/rxe0/1/dil"
	[[ $output == *'Operation not permitted'* ]]
	run ln -s a "$MNT/b"
	[[ $output == *'Operation not permitted'* ]]
}

@test "node_desc can be written, and is the node's" {
	echo 'a new name' >"$MNT/rxe0/node_desc"
	[ "$(cat "$MNT/rxe0/node_desc")" = 'a new name' ]
	[ "$(cat "$MNT/sys/class/infiniband/rxe0/node_desc")" = 'a new name' ]
	[ "$(cat "$SYSTEM_MNT/fabric/nodes/rxe0/desc")" = 'a new name' ]
	printf %65s x >"$BATS_TEST_TMPDIR/long"
	run ! cp "$BATS_TEST_TMPDIR/long" "$MNT/rxe0/node_desc"
	[ "$(cat "$MNT/rxe0/node_desc")" = 'a new name' ]
	tail -1 "$MNT/errors" | grep -q 'EINVAL: rxe0: a value of more than 64 bytes'
}

@test "sys_image_guid can be written, as a GUID or a number" {
	soft_only "its sys_image_guid is the driver's"
	echo 0002:c903:0000:0001 >"$MNT/rxe0/sys_image_guid"
	[ "$(cat "$MNT/rxe0/sys_image_guid")" = 0002:c903:0000:0001 ]
	echo 0x2c90300000002 >"$MNT/rxe0/sys_image_guid"
	[ "$(cat "$MNT/rxe0/sys_image_guid")" = 0002:c903:0000:0002 ]
	run ! bash -c "echo none >'$MNT/rxe0/sys_image_guid'"
	tail -1 "$MNT/errors" | grep -q '"none" is not a GUID'
}

@test "writing 0 clears a counter, and nothing else can be written" {
	run ! bash -c "echo 1 >'$MNT/rxe0/1/counters/port_xmit_data'"
	run ! bash -c "echo 00 >'$MNT/rxe0/1/counters/port_xmit_data'"
	[[ $output == *'Invalid argument'* ]]
	tail -1 "$MNT/errors" | grep -q 'can be set to 0 only'
	command -v ibstat >/dev/null || skip "infiniband-diags is not installed"
	ib smpquery -D nodeinfo 0,1
	[ "$(cat "$MNT/rxe0/1/counters/port_xmit_data")" -gt 0 ]
	echo 0 >"$MNT/rxe0/1/counters/port_xmit_data"
	[ "$(cat "$MNT/rxe0/1/counters/port_xmit_data")" = 0 ]
	[ "$(cat "$MNT/rxe0/1/counters/port_rcv_data")" -gt 0 ]
}

@test "an open file that seeks back reads what is new" {
	"$BUILD/tests/fs_client" seek "$MNT/rxe1/node_desc"
}

@test "1,000 opens at a time" {
	"$BUILD/tests/fs_client" opens "$MNT/metrics" 1000
	"$BUILD/tests/fs_client" opens "$MNT/rxe0/1/attr" 1000
}

@test "query finds a GID and a P_Key" {
	local gid
	gid=$(cat "$MNT/rxe0/1/gids/0")
	exec 5<>"$MNT/rxe0/query"
	echo "gid $gid" >&5
	read -r -u 5 line
	[ "$line" = "1 0" ]
	echo "pkey 0x7fff" >&5
	read -r -u 5 line
	[ "$line" = "1 0" ]
	run ! bash -c 'echo "gid fe80::1" >&5'
	[[ $output == *'No such file or directory'* ]]
	run ! bash -c 'echo "pkey 0x1234" >&5'
	[[ $output == *'No such file or directory'* ]]
	run ! bash -c 'echo "lid 3" >&5'
	[[ $output == *'Invalid argument'* ]]
	exec 5>&-
	tail -1 "$MNT/errors" | grep -q "expected .gid GID. or .pkey PKEY."
}

@test "a port's ctl changes capabilities and refuses what it doesn't know" {
	soft_only "no process modifies a port"
	local before
	before=$(cat "$MNT/rxe0/1/cap_mask")
	echo 'set_cap 0x10000' >"$MNT/rxe0/1/ctl"
	[ "$(cat "$MNT/rxe0/1/cap_mask")" = "$(printf '0x%08x' $((before | 0x10000)))" ]
	echo 'clr_cap 0x10000' >"$MNT/rxe0/1/ctl"
	[ "$(cat "$MNT/rxe0/1/cap_mask")" = "$before" ]
	printf 'init_type 3\nreset_qkey_cntr\n' >"$MNT/rxe0/1/ctl"
	for line in 'set_cap' 'set_cap x' 'set_cap 0x100000000' 'init_type 16' 'shutdown now' 'fly' \
		'set_cap 1 2'; do
		run ! bash -c "echo '$line' >'$MNT/rxe0/1/ctl'"
		[[ $output == *'Invalid argument'* ]] || fail "$line: $output"
	done
	tail -1 "$MNT/errors" | grep -q "rxe0/1/ctl: expected .set_cap MASK."
}

@test "of several lines those before a wrong one are carried out" {
	soft_only "no process modifies a port"
	local before
	before=$(cat "$MNT/rxe0/1/cap_mask")
	printf 'set_cap 0x10000\n\nwrong\nset_cap 0x20000\n' >"$BATS_TEST_TMPDIR/lines"
	run ! dd if="$BATS_TEST_TMPDIR/lines" of="$MNT/rxe0/1/ctl" bs=100 count=1 conv=notrunc
	[ "$(cat "$MNT/rxe0/1/cap_mask")" = "$(printf '0x%08x' $((before | 0x10000)))" ]
	echo 'clr_cap 0x30000' >"$MNT/rxe0/1/ctl"
}

@test "shutdown takes the port down, and the link's ctl brings it back" {
	soft_only "no process modifies a port"
	echo shutdown >"$MNT/rxe1/1/ctl"
	[ "$(cat "$MNT/rxe1/1/state")" = '1: DOWN' ]
	[ "$(cat "$MNT/rxe1/1/phys_state")" = '3: Disabled' ]
	[ "$(cat "$MNT/fabric/links/rxe1:1-switch:2/state")" = down ]
}

@test "metrics are Prometheus text in bytes" {
	local words
	words=$(cat "$MNT/rxe0/1/counters/port_xmit_data")
	grep -qx "ibfs_port_data_transmitted_bytes_total{device=\"rxe0\",port=\"1\"} $((words * 4))" \
		"$MNT/metrics"
	# Each sample has a TYPE before it, and nothing else is there.
	# shellcheck disable=SC2016
	run -0 awk '
		/^# HELP [a-z0-9_]+ ./ { next }
		/^# TYPE [a-z0-9_]+ (counter|gauge)$/ { type[$3] = 1; next }
		/^[a-z0-9_]+(\{device="[^"]+",port="[0-9]+"\})? [0-9.e+]+$/ ||
		/^ibfs_account_[a-z]+\{uid="[0-9]+",peer="",item="[a-z_]+"\} [0-9]+$/ {
			name = $1; sub(/\{.*/, "", name)
			if (type[name]) next
		}
		{ print "bad: " $0; exit 1 }' "$MNT/metrics"
	[ "$(grep -c '^ibfs_port_state' "$MNT/metrics")" = 2 ]
}

@test "errors tells why, newest last" {
	local i
	for i in $(seq 150); do
		run ! bash -c "echo 'a long command that nobody knows, $i' >'$MNT/fabric/ctl'"
	done
	[ "$(wc -c <"$MNT/errors")" -gt 4096 ]
	run ! bash -c "echo nonsense >'$MNT/fabric/ctl'"
	tail -1 "$MNT/errors" | grep -qx 'EINVAL: fabric/ctl: no command "nonsense"'
}
