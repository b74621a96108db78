# SPDX-License-Identifier: BSD-2-Clause
# A daemon with no mount: the tree by 9P2000 is that of 9P2000.L, errors come in
# words, and the shell session of the manual runs through a 9P client.
load helpers
load 9p

setup_file() { start_9p; }
teardown_file() { stop_9p; }

# All directories below $1, itself first, by 9P2000.L.
walk_dirs()
{
	local name
	printf '%s\n' "$1"
	p9 ls "$1" 2>/dev/null | while read -r name; do
		case $name in
		*[[:upper:].]* | clone | ctl | umad | issm | pcap) continue ;;
		esac
		[ "$(p9 stat "$1/$name" | cut -d' ' -f1)" != 755 ] || walk_dirs "$1/$name"
	done
}

@test "directories by 9P2000 are those by 9P2000.L" {
	local dir n=0
	while read -r dir; do
		diff <(p9 ls "$dir") <(p9_2000 ls "$dir") || fail "$dir" || return 1
		n=$((n + 1))
	done < <(walk_dirs rxe0; printf '%s\n' "" dev/infiniband sys/class/infiniband qp)
	[ $n -gt 10 ] || fail "only $n directories"
}

@test "files by 9P2000, in messages of any size" {
	local file
	for file in README version rxe0/attr rxe0/1/attr rxe0/1/gids/0 fabric/topology sys/class/infiniband/rxe0/node_guid; do
		cmp <(p9 cat "$file") <(p9_2000 -m 512 cat "$file") || fail "$file" || return 1
		cmp <(p9 -m 600 cat "$file") <(p9_2000 cat "$file") || fail "$file" || return 1
	done
	[ "$(p9_2000 -m 512 ls fabric | sort)" = "$(p9 ls fabric | sort)" ]
	[ "$(p9 -m 512 ls rxe0/1/counters | sort)" = "$(p9_2000 ls rxe0/1/counters | sort)" ]
}

@test "attributes by 9P2000" {
	[ "$(p9_2000 stat rxe0/1/state)" = "444 4096 $(id -un) $(id -gn) state" ]
	[ "$(p9_2000 stat pd | cut -d' ' -f1,2,5)" = "777 0 pd" ]
	p9_2000 chmod rxe0/1/umad 640
	[ "$(p9 stat rxe0/1/umad | cut -d' ' -f1)" = 640 ]
	p9 chmod rxe0/1/umad 600
	[ "$(p9_2000 stat rxe0/1/umad | cut -d' ' -f1)" = 600 ]
}

@test "9P2000 tells the reason in words" {
	run ! p9_2000 cat none
	assert_line 'No such file or directory$'
	run ! p9_2000 cat rxe0/1/umad
	assert_line 'over 9P there is no process to serve$'
	run ! p9_2000 write rxe0/1/ctl <<<"jump"
	assert_line 'jump'
	run ! p9_2000 mkdir pd/7
	assert_line 'p9: pd/7: '
	run ! p9_2000 rm rxe0/1/state
	assert_line 'Operation not permitted$'
	p9 cat errors >"$BATS_TEST_TMPDIR/errors"
	grep -q 'over 9P there is no process' "$BATS_TEST_TMPDIR/errors"
}

@test "the shell session of the manual, by 9P2000.L and 9P2000" {
	local file=$TOP/Makefile size rkey v q m line
	size=$(stat -c %s "$file")
	for v in 9P2000.L 9P2000; do
		ib9() { timeout 30 "$BUILD/tests/p9" -s "$SOCK" -v $v "$@"; }
		for q in pd/p cq/c mr/src mr/dst qp/a qp/b; do ib9 mkdir $q; done
		echo 'create device=rxe0' | ib9 write pd/p/ctl
		echo 'create device=rxe0 cqe=64' | ib9 write cq/c/ctl
		for m in src dst; do
			echo 'create pd=p size=1M access=local_write,remote_write,remote_read' |
				ib9 write mr/$m/ctl
		done
		for q in a b; do
			echo 'create type=rc pd=p cq=c sq=16 rq=16' | ib9 write qp/$q/ctl
		done
		echo 'connect peer=b' | ib9 write qp/a/ctl
		ib9 write mr/src/data <"$file"
		rkey=$(ib9 cat mr/dst/rkey)
		echo "write mr=src length=$size raddr=0 rkey=$rkey" | ib9 write qp/a/post
		line=$(ib9 line cq/c/wc)
		[[ $line == "wr_id=1 status=success opcode=rdma_write byte_len="*" qp=a"* ]] ||
			fail "$line" || return 1
		cmp -n "$size" "$file" <(ib9 cat mr/dst/data)
		run ! ib9 rm pd/p
		assert_line 'p9: pd/p: '
		for q in qp/a qp/b mr/src mr/dst cq/c pd/p; do ib9 rm $q; done
		[ "$(ib9 ls pd)" = clone ]
	done
}
