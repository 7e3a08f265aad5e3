/* Preloaded into a process: kills it just before the n-th call that changes the file system, once it is armed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls = 0, target = -1; /* target -1: not armed; 0: only count */

void torture_arm(long n) { calls = 0; target = n; }
long torture_disarm(void) { target = -1; return calls; }

static void step(void) {
    long wanted = target;
    if (wanted >= 0 && atomic_fetch_add(&calls, 1) + 1 == wanted) kill(getpid(), SIGKILL);
}

#define REAL(name) ({ static void *found; if (!found) found = dlsym(RTLD_NEXT, #name); found; })
#define WRAP(type, name, parameters, arguments) \
    type name parameters { step(); return ((type (*) parameters) REAL(name)) arguments; }

WRAP(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n))
WRAP(ssize_t, pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at))
WRAP(ssize_t, pwrite64, (int fd, const void *from, size_t n, off64_t at), (fd, from, n, at))
WRAP(ssize_t, writev, (int fd, const struct iovec *from, int n), (fd, from, n))
WRAP(int, fsync, (int fd), (fd))
WRAP(int, fdatasync, (int fd), (fd))
WRAP(int, rename, (const char *from, const char *to), (from, to))
WRAP(int, renameat2, (int a, const char *from, int b, const char *to, unsigned f), (a, from, b, to, f))
WRAP(int, link, (const char *from, const char *to), (from, to))
WRAP(int, linkat, (int a, const char *from, int b, const char *to, int f), (a, from, b, to, f))
WRAP(int, unlink, (const char *path), (path))
WRAP(int, unlinkat, (int a, const char *path, int f), (a, path, f))
WRAP(int, rmdir, (const char *path), (path))
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(int, ftruncate, (int fd, off_t n), (fd, n))
WRAP(int, ftruncate64, (int fd, off64_t n), (fd, n))

#define WRAP_OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; va_end(rest); \
        if (flags & O_CREAT) step(); \
        return ((int (*)(const char *, int, ...)) REAL(name))(path, flags, mode); }
WRAP_OPEN(open)
WRAP_OPEN(open64)
