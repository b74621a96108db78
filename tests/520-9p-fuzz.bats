# SPDX-License-Identifier: BSD-2-Clause
# What `make fuzz` found worth keeping, once each: sessions of clients, and
# messages made of them that reach other lines of the server.
load helpers

@test "the corpus of 9P messages leaves the server well, and nothing behind" {
	local n
	n=$(find "$TOP/tests/corpus/9p" -type f -size +0 | wc -l)
	run -0 timeout 200 "$BUILD/tests/p9_fuzz" "$TOP/tests/corpus/9p"
	[ "$output" = "$n inputs" ]
}
