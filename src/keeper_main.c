/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keeper's process (ibfs/keeper.h): without any right, it takes descriptors
 * from the daemon until that is gone, does what is to be done then
 * (keeper_end.c), and ends. It allocates no memory but what is mapped here.
 * seccomp(2), capabilities(7).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper_end.h"

enum { SOCK = STDIN_FILENO, BOOK = STDOUT_FILENO };

/* --- rights --- */

#if defined(__x86_64__)
static const uint32_t arch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
static const uint32_t arch = AUDIT_ARCH_AARCH64;
#else
static const uint32_t arch;	/* no filter */
#endif

/* A sanitizer has calls of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool sanitized = true;
#else
static const bool sanitized;
#endif

/* All that it ever calls from here on. */
static const int calls[] = {
	SYS_recvmsg, SYS_mmap, SYS_munmap, SYS_lseek, SYS_close, SYS_futex, SYS_clock_nanosleep,
	SYS_restart_syscall, SYS_exit_group,
};

enum { NUM_CALLS = sizeof(calls) / sizeof(calls[0]) };

/* Other calls fail. */
static int filter_calls(void)
{
	struct sock_filter code[NUM_CALLS + 5];
	struct sock_fprog prog = { .len = NUM_CALLS + 5, .filter = code };
	unsigned int n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arch, 0, NUM_CALLS + 1);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (unsigned int i = 0; i < NUM_CALLS; i++)
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i],
							 NUM_CALLS - i, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/*
 * It stays the daemon's user, so that nobody else may end it or look into it, but
 * without what that user may do. A kernel without filters is no reason to do without it.
 */
static int give_up_rights(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (chdir("/") || prctl(PR_SET_DUMPABLE, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_capset, &head, none))
		return -1;
	if (arch && !sanitized)
		filter_calls();
	return 0;
}

/* --- what comes from the daemon --- */

static int received_fd(struct msghdr *msg)
{
	struct cmsghdr *head = CMSG_FIRSTHDR(msg);
	int fd = -1;

	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
	    head->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

/* False: the daemon is gone. */
static bool receive(struct keep_files *files)
{
	union {
		struct cmsghdr head;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct keep_message message;
	struct iovec part = { &message, sizeof(message) };
	struct msghdr msg = {
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = control.buf, .msg_controllen = sizeof(control.buf),
	};
	ssize_t n = recvmsg(SOCK, &msg, MSG_CMSG_CLOEXEC);
	struct keep_memory *memory;

	if (n <= 0)
		return n < 0 && errno == EINTR;
	if (n != sizeof(message) || !message.file || message.file >= KEEP_FILES)
		return true;
	memory = &files->memory[message.file];
	if (memory->fd)
		close(memory->fd);
	/* Descriptor 0 is the socket, and none is below. */
	*memory = (struct keep_memory){ .kind = message.kind };
	memory->fd = message.kind ? received_fd(&msg) : 0;
	if (memory->fd < 0)
		*memory = (struct keep_memory){ 0 };
	if (files->used <= message.file)
		files->used = message.file + 1;
	return true;
}

/* Much room, of which little is used. */
static struct keep_files *files_new(void)
{
	struct keep_files *files = mmap(NULL, sizeof(*files), PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (files == MAP_FAILED)
		return NULL;
	files->book = mmap(NULL, sizeof(*files->book), PROT_READ | PROT_WRITE, MAP_SHARED, BOOK, 0);
	return files->book == MAP_FAILED ? NULL : files;
}

int keeper_main(void)
{
	struct keep_files *files = files_new();

	prctl(PR_SET_NAME, KEEPER_NAME);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	if (!files || give_up_rights())
		_exit(EXIT_FAILURE);
	while (receive(files))
		;
	keeper_end(files);
	_exit(EXIT_SUCCESS);
}
