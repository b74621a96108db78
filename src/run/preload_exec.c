/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibfs-run.so: a program that is run with other preloaded libraries than its
 * parent's, as mpirun, a shell or a debugger may say, has this one too, behind
 * them: it sees the same tree. Who takes LD_PRELOAD away altogether gets it so.
 *
 * A child of vfork() may call these: all is on the stack.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/preload.h"

#define VARIABLE	"LD_PRELOAD="
#define VARIABLE_LEN	(sizeof(VARIABLE) - 1)

/* More than that is left as it is: it has to be on the stack. */
enum { ENV_MAX = 8192, VALUE_MAX = 8192 };

static struct {
	atomic_bool found;
	const char *library;
	int (*execvpe)(const char *, char *const *, char *const *);
	int (*posix_spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *,
			   const posix_spawnattr_t *, char *const *, char *const *);
	int (*posix_spawnp)(pid_t *, const char *, const posix_spawn_file_actions_t *,
			    const posix_spawnattr_t *, char *const *, char *const *);
} calls;

/*
 * Looked for at the first use, since other libraries' constructors may come
 * before ours, and at the start at the latest: a child of vfork() only reads
 * them. Any thread finds the same.
 */
static void __attribute__((constructor)) find_calls(void)
{
	Dl_info info;

	if (atomic_load_explicit(&calls.found, memory_order_acquire))
		return;
	if (dladdr(&calls, &info) && info.dli_fname && *info.dli_fname == '/')
		calls.library = info.dli_fname;
	calls.execvpe = dlsym(RTLD_NEXT, "execvpe");
	calls.posix_spawn = dlsym(RTLD_NEXT, "posix_spawn");
	calls.posix_spawnp = dlsym(RTLD_NEXT, "posix_spawnp");
	atomic_store_explicit(&calls.found, true, memory_order_release);
}

/* What an environment says to preload, if the library isn't in it; *count: its variables. */
static const char *lacks(char *const env[], size_t *index, size_t *count)
{
	const char *value = NULL;

	for (*count = 0; env && env[*count]; ++*count)
		if (!value && !strncmp(env[*count], VARIABLE, VARIABLE_LEN)) {
			value = env[*count] + VARIABLE_LEN;
			*index = *count;
		}
	if (!value || !*value || *count > ENV_MAX || !calls.library || !preload_has_tree() ||
	    strlen(value) + strlen(calls.library) + VARIABLE_LEN + 2 > VALUE_MAX ||
	    strstr(value, calls.library))
		return NULL;
	/* In another root it may not be. */
	return syscall(SYS_faccessat, AT_FDCWD, calls.library, R_OK) ? NULL : value;
}

/* How a program is run; the arguments of those functions that have them. */
struct run {
	int (*fn)(const struct run *run, char *const env[]);
	const char *path;
	char *const *argv;
	int dir, flags;
	pid_t *pid;
	const posix_spawn_file_actions_t *actions;
	const posix_spawnattr_t *attr;
};

static int run_with_more(const struct run *run, char *const env[], const char *value, size_t index,
			 size_t count)
{
	char *copy[count + 1];
	char text[VARIABLE_LEN + strlen(value) + 1 + strlen(calls.library) + 1];
	char *end;

	memcpy(copy, env, (count + 1) * sizeof(*copy));
	end = stpcpy(stpcpy(text, VARIABLE), value);
	*end++ = ':';
	strcpy(end, calls.library);
	copy[index] = text;
	return run->fn(run, copy);
}

static int run(const struct run *run, char *const env[])
{
	int saved = errno;
	size_t index = 0, count;
	const char *value;

	find_calls();
	value = lacks(env, &index, &count);
	errno = saved;
	return value ? run_with_more(run, env, value, index, count) : run->fn(run, env);
}

static int by_path(const struct run *run, char *const env[])
{
	return (int)syscall(SYS_execve, run->path, run->argv, env);
}

static int by_descriptor(const struct run *run, char *const env[])
{
	return (int)syscall(SYS_execveat, run->dir, run->path, run->argv, env, run->flags);
}

static int by_name(const struct run *run, char *const env[])
{
	return calls.execvpe(run->path, run->argv, env);
}

static int by_spawn(const struct run *run, char *const env[])
{
	return calls.posix_spawn(run->pid, run->path, run->actions, run->attr, run->argv, env);
}

static int by_spawn_name(const struct run *run, char *const env[])
{
	return calls.posix_spawnp(run->pid, run->path, run->actions, run->attr, run->argv, env);
}

/* glibc's declarations have reserved names. NOLINTBEGIN(*-inconsistent-declaration-parameter-name) */
int execve(const char *path, char *const argv[], char *const env[])
{
	return run(&(struct run){ .fn = by_path, .path = path, .argv = argv }, env);
}

int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

int execveat(int dir, const char *path, char *const argv[], char *const env[], int flags)
{
	return run(&(struct run){ .fn = by_descriptor, .path = path, .argv = argv, .dir = dir,
				  .flags = flags }, env);
}

int fexecve(int fd, char *const argv[], char *const env[])
{
	return execveat(fd, "", argv, env, AT_EMPTY_PATH);
}

int execvpe(const char *file, char *const argv[], char *const env[])
{
	return run(&(struct run){ .fn = by_name, .path = file, .argv = argv }, env);
}

int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	return run(&(struct run){ .fn = by_spawn, .path = path, .argv = argv, .pid = pid,
				  .actions = actions, .attr = attr }, env);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	return run(&(struct run){ .fn = by_spawn_name, .path = file, .argv = argv, .pid = pid,
				  .actions = actions, .attr = attr }, env);
}

/* --- those that take their arguments one by one --- */

/* With the one that is named before them; behind their end the caller may go on. */
static size_t count_args(va_list *args)
{
	size_t num = 1;

	while (va_arg(*args, char *))
		num++;
	return num;
}

static void take_args(char *argv[], size_t num, const char *first, va_list *args)
{
	argv[0] = (char *)first;
	for (size_t i = 1; i <= num; i++)
		argv[i] = va_arg(*args, char *);
}

/* The environment is behind them, or ours. */
static int run_list(int (*fn)(const char *, char *const *, char *const *), const char *name,
		    const char *first, va_list *args, bool has_env)
{
	va_list counted;
	size_t num;

	va_copy(counted, *args);
	num = count_args(&counted);
	va_end(counted);
	char *argv[num + 1];
	take_args(argv, num, first, args);
	return fn(name, argv, has_env ? va_arg(*args, char *const *) : environ);
}

int execl(const char *path, const char *arg, ...)
{
	va_list args;
	int ret;

	va_start(args, arg);
	ret = run_list(execve, path, arg, &args, false);
	va_end(args);
	return ret;
}

int execlp(const char *file, const char *arg, ...)
{
	va_list args;
	int ret;

	va_start(args, arg);
	ret = run_list(execvpe, file, arg, &args, false);
	va_end(args);
	return ret;
}

int execle(const char *path, const char *arg, ...)
{
	va_list args;
	int ret;

	va_start(args, arg);
	ret = run_list(execve, path, arg, &args, true);
	va_end(args);
	return ret;
}
/* NOLINTEND(*-inconsistent-declaration-parameter-name) */
