# SPDX-License-Identifier: BSD-2-Clause
# The suites of the tree, of umad and of programs that use it, on the system's devices. (Of others
# IBFS_NESTED=1 tests/run build tests/2*.bats does the same.)
load helpers
load nested

setup_file() { nested_can || return 0; }

# All but those that read every file of the tree, which take long.
@test "the tree, umad, issm" {
	suite "100-tree:sys/class|names|written|counter|query|metrics|seeks|fixed|numbered|root has" \
		150-umad 151-umad-rmpp 152-issm
}
@test "queues, permissions, clients whose pages hang" {
	suite 101-queues 102-permissions 154-dead-page
}
@test "MADs in words, far nodes, infiniband-diags, for Prometheus" {
	suite "510-peer:topology|smpquery" 107-mad-text 550-mad-words \
		201-smpquery 203-perfquery 105-node-exporter
}
