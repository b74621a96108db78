# SPDX-License-Identifier: BSD-2-Clause
# The tree over 9P, by clients that others wrote: diod's, of 9P2000.L. What they
# see is what FUSE shows.
load helpers

setup_file()
{
	export SOCK=$BATS_FILE_TMPDIR/9p
	start_ibfs "" --9p "unix:$SOCK" --9p tcp:localhost:5640
}
teardown_file() { stop_ibfs; }

setup()
{
	[ -z "${IBFS_SKIP:-}" ] || skip "$IBFS_SKIP"
	need_tool diodls diodcat diodload
}

dls() { timeout 20 diodls -s "$SOCK" -a / "$@"; }
dcat() { timeout 20 diodcat -s "$SOCK" -a / "$@"; }

# Files that say the same whoever asks, and who needn't wait for it.
stable_files()
{
	(cd "$MNT" && find . -path '*/peer/ports/[3-9]' -prune -o -type f -readable ! -name 'umad*' ! -name 'issm*' ! -name 'uverbs*' \
		! -name pcap ! -name events ! -name query ! -name ctl ! -name clone \
		! -name metrics ! -name accounts ! -name errors \
		! -path '*/peer/*/counters/*packets' ! -path '*/peer/*/counters/*data' -printf '%P\n')
}

@test "every directory lists what it lists over FUSE" {
	local dir
	while read -r dir; do
		diff <(ls -AU "$MNT/$dir") <(dls "$dir") || fail "$dir" || return 1
	done < <(cd "$MNT" && find . -path '*/peer/ports/[3-9]' -prune -o -type d -printf '%P\n' | sort | awk 'NR % 4 == 1')
}

@test "every file reads as it does over FUSE, byte for byte" {
	local file n=0
	# Looking into peer/ asks far nodes, and they count that.
	stable_files >"$BATS_TEST_TMPDIR/files"
	while read -r file; do
		cat "$MNT/$file" >"$BATS_TEST_TMPDIR/fuse" 2>/dev/null || continue
		dcat "$file" >"$BATS_TEST_TMPDIR/9p" || fail "diodcat $file" || return 1
		cmp "$BATS_TEST_TMPDIR/fuse" "$BATS_TEST_TMPDIR/9p" || fail "$file" || return 1
		n=$((n + 1))
	done <"$BATS_TEST_TMPDIR/files"
	[ $n -gt 300 ] || fail "only $n files"
}

@test "attributes are those that FUSE shows" {
	dls -l rxe0/1 | awk '$NF != "." && $NF != ".." { print $1, $3, $4, $5, $NF }' | sed 's/\.\? / /' >"$BATS_TEST_TMPDIR/9p"
	# shellcheck disable=SC2012
	ls -lU "$MNT/rxe0/1" | awk 'NR > 1 { print $1, $3, $4, $5, $NF }' | sed 's/\.\? / /' >"$BATS_TEST_TMPDIR/fuse"
	diff "$BATS_TEST_TMPDIR/fuse" "$BATS_TEST_TMPDIR/9p"
}

@test "the same over TCP" {
	[ "$(timeout 20 diodcat -s 127.0.0.1:5640 -a / version)" = "$(cat "$MNT/version")" ]
	[ "$(timeout 20 diodcat -s 127.0.0.1:5640 -a /rxe0/1 lid gids/0)" = \
		"$(cat "$MNT"/rxe0/1/{lid,gids/0})" ]
}

@test "diodload's threads read and write" {
	run -0 timeout 20 diodload -s "$SOCK" -r 1
	assert_line '^diodload: [1-9][0-9]* ops/s, [1-9][0-9]* rMB/s, [1-9][0-9]* wMB/s'
	run -0 timeout 20 diodload -g -n 64 -s 127.0.0.1:5640 -r 1
	assert_line '^diodload: [1-9][0-9]* ops/s'
}

@test "what is not there, what may not be read" {
	run ! dcat rxe0/none
	assert_line 'No such file or directory'
	run ! dcat rxe0/1/umad
	assert_line 'not supported'
	run ! dcat pd
	assert_line 'Is a directory'
	run ! timeout 20 diodcat -s "$SOCK" -a /none version
	assert_line 'No such file'
}
