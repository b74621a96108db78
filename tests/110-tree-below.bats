# SPDX-License-Identifier: BSD-2-Clause
# The tree's own functions, below any front end.
load helpers

@test "numbers, lines, words, names, queues of lines" { "$BUILD/tests/fs_text"; }
@test "every path, name and cookie, permissions, a device that goes" { "$BUILD/tests/fs_tree"; }
