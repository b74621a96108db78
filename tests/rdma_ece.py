# SPDX-License-Identifier: BSD-2-Clause
"""Both ends of connections by librdmacm, with the options of enhanced connection
establishment that it carries: rdma_ece.py PORT, by the loopback address. No QP is
made: librdmacm then leaves their numbers and the options to its caller."""
import ctypes
import socket
import struct
import sys

cm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
ADDR_RESOLVED, ROUTE_RESOLVED, CONNECT_REQUEST, CONNECT_RESPONSE = 0, 2, 4, 5
ESTABLISHED, DISCONNECTED = 9, 10
RDMA_PS_TCP = 0x106


class Ece(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("vendor_id", "options", "comp_mask")]


class ConnParam(ctypes.Structure):
    _fields_ = [("private_data", ctypes.c_void_p)] + [
        (name, ctypes.c_uint8) for name in (
            "private_data_len", "responder_resources", "initiator_depth", "flow_control",
            "retry_count", "rnr_retry_count", "srq")] + [("qp_num", ctypes.c_uint32)]


class Event(ctypes.Structure):
    _fields_ = [("id", ctypes.c_void_p), ("listen_id", ctypes.c_void_p),
                ("event", ctypes.c_int), ("status", ctypes.c_int), ("conn", ConnParam)]


cm.rdma_create_event_channel.restype = ctypes.c_void_p


def call(name, *args):
    if getattr(cm, name)(*args) != 0:
        sys.exit(f"{name}: errno {ctypes.get_errno()}")


def make_id(channel):
    cm_id = ctypes.c_void_p()
    call("rdma_create_id", channel, ctypes.byref(cm_id), None, RDMA_PS_TCP)
    return cm_id


def wait(channel, kind):
    """The next event, which must be of that kind: whose it is."""
    event = ctypes.POINTER(Event)()
    call("rdma_get_cm_event", channel, ctypes.byref(event))
    got, cm_id = (event.contents.event, event.contents.status), event.contents.id
    call("rdma_ack_cm_event", event)
    if got != (kind, 0):
        sys.exit(f"event and status {got}, not {(kind, 0)}")
    return ctypes.c_void_p(cm_id)


def remote(cm_id):
    ece = Ece()
    call("rdma_get_remote_ece", cm_id, ctypes.byref(ece))
    return ece.vendor_id, ece.options


def offer(cm_id, vendor_id, options):
    if vendor_id:
        call("rdma_set_local_ece", cm_id, ctypes.byref(Ece(vendor_id, options, 0)))


def expect(what, is_, wanted):
    if is_ != wanted:
        sys.exit(f"{what}: {is_}, not {wanted}")


def connect(number, client_ece, server_ece):
    """One connection, of QPs that no other has: each end is told what the other offers."""
    channel = ctypes.c_void_p(cm.rdma_create_event_channel())
    cm_id = make_id(channel)
    call("rdma_resolve_addr", cm_id, None, address("127.0.0.1"), 2000)
    wait(channel, ADDR_RESOLVED)
    call("rdma_resolve_route", cm_id, 2000)
    wait(channel, ROUTE_RESOLVED)
    offer(cm_id, *client_ece)
    call("rdma_connect", cm_id, ctypes.byref(ConnParam(qp_num=16 * number)))

    accepted = wait(listening, CONNECT_REQUEST)
    expect("to the server", remote(accepted), client_ece)
    offer(accepted, *server_ece)
    call("rdma_accept", accepted, ctypes.byref(ConnParam(qp_num=16 * number + 1)))

    wait(channel, CONNECT_RESPONSE)
    # librdmacm answers with the vendor that it was asked for.
    expect("to the client", remote(cm_id), (client_ece[0], server_ece[1]))
    call("rdma_establish", cm_id)
    wait(listening, ESTABLISHED)
    call("rdma_disconnect", cm_id)
    wait(listening, DISCONNECTED)
    call("rdma_disconnect", accepted)
    wait(channel, DISCONNECTED)
    call("rdma_destroy_id", accepted)
    call("rdma_destroy_id", cm_id)
    cm.rdma_destroy_event_channel(channel)


def address(name):
    return ctypes.create_string_buffer(
        struct.pack("=HHH", socket.AF_INET, socket.htons(int(sys.argv[1])), 0)[:4] +
        socket.inet_aton(name) + bytes(8))


listening = ctypes.c_void_p(cm.rdma_create_event_channel())
listener = make_id(listening)
call("rdma_bind_addr", listener, address("0.0.0.0"))
call("rdma_listen", listener, 4)
connect(1, (0xa1b2c3, 0x89abcdef), (0x654321, 0x12345678))
connect(2, (0, 0), (0, 0))
connect(3, (1, 0xffffffff), (1, 0))
call("rdma_destroy_id", listener)
