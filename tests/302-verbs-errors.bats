# SPDX-License-Identifier: BSD-2-Clause
# Completion statuses, each provoked: tests/verbs_errors.c.
load helpers

errors() { "$BUILD/tests/verbs_errors" "$1"; }

@test "loc_len_err, rem_inv_req_err" { errors length; }
@test "loc_prot_err, wr_flush_err" { errors local_prot; }
@test "rem_op_err" { errors remote_op; }
@test "rem_access_err: keys, bounds, permissions, domains" { errors access; }
@test "rem_inv_req_err, loc_qp_op_err" { errors invalid; }
@test "loc_access_err" { errors local_access; }
@test "retry_exc_err" { errors retry_exceeded; }
@test "rnr_retry_exc_err, and every RNR timer" { errors rnr; }
@test "flush in order" { errors flush; }
@test "a CQ that overruns" { errors overrun; }
@test "bad_resp_err" { errors bad_response; }
@test "SQE" { errors sqe; }
