/* Preloaded into a process. Once it is armed, it counts the calls that change files and does harm at the n-th one:
   it kills the process, or makes the call fail with an error number. It can also write down what was synced, and turn
   the clock. Pipes and sockets do not count: they are the threads' own signals. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls = 0, target = -1; /* target -1: not armed; 0: only count */
static int error_number = 0, lasting = 0;  /* 0: kill; lasting: every later call fails too, as on a full disk */
static char journal[512] = "";             /* folder for what was synced; empty: nothing is written down */
static atomic_long syncs = 0, turned = 0;  /* turned: seconds added to the clock */

void torture_arm(long n) { calls = 0; error_number = 0; target = n; }
void torture_fail(long n, int number, int from_then_on) { calls = 0; error_number = number; lasting = from_then_on; target = n; }
long torture_disarm(void) { target = -1; return calls; }
void torture_record(const char *folder) { snprintf(journal, sizeof journal, "%s", folder); }
void torture_clock(long seconds) { turned = seconds; }

static int step(void) { /* whether the call has to fail */
    long wanted = target;
    if (wanted < 0) return 0;
    long now = atomic_fetch_add(&calls, 1) + 1;
    if (wanted == 0 || now < wanted || (now > wanted && !(error_number && lasting))) return 0;
    if (!error_number) kill(getpid(), SIGKILL);
    errno = error_number;
    return 1;
}

static int on_file(int fd) {
    struct stat found;
    return fstat(fd, &found) == 0 && (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode));
}

#define REAL(name) ({ static void *found; if (!found) found = dlsym(RTLD_NEXT, #name); found; })
#define CALL(type, name, parameters, arguments) ((type (*) parameters) REAL(name)) arguments
#define WRAP(type, name, parameters, arguments) \
    type name parameters { if (step()) return -1; return CALL(type, name, parameters, arguments); }
#define WRAP_FD(type, name, parameters, arguments) \
    type name parameters { if (on_file(fd) && step()) return -1; return CALL(type, name, parameters, arguments); }

static int list_names(const char *folder, FILE *out) {
    DIR *open_folder = opendir(folder);
    if (!open_folder) return -1;
    for (struct dirent *one; (one = readdir(open_folder));)
        if (strcmp(one->d_name, ".") && strcmp(one->d_name, ".."))
            fprintf(out, "%lu %s\n", (unsigned long) one->d_ino, one->d_name);
    return closedir(open_folder);
}

/* JOURNAL/NUMBER.INODE.f or .d holds the content of a file, or the names in a folder, as of a sync. */
static int synced(int fd, int result) {
    struct stat found;
    if (result || !journal[0] || fstat(fd, &found)) return result;
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&turn);
    char from[64], to[640], kept[700];
    snprintf(from, sizeof from, "/proc/self/fd/%d", dup(fd)); /* stays open, so that its number is not used again */
    snprintf(kept, sizeof kept, "%s/%08ld.%lu.%c", journal, atomic_fetch_add(&syncs, 1),
             (unsigned long) found.st_ino, S_ISDIR(found.st_mode) ? 'd' : 'f');
    snprintf(to, sizeof to, "%s/.now", journal);
    long armed = atomic_exchange(&target, -1);
    if (S_ISREG(found.st_mode)) {
        char part[65536];
        int in = open(from, O_RDONLY), out = open(to, O_CREAT | O_WRONLY | O_TRUNC, 0600);
        for (ssize_t n; in >= 0 && (n = read(in, part, sizeof part)) > 0;) if (write(out, part, n) != n) break;
        close(in); close(out);
    } else {
        FILE *out = fopen(to, "w");
        if (out) { list_names(from, out); fclose(out); }
    }
    if (rename(to, kept)) perror("journal");
    atomic_store(&target, armed);
    pthread_mutex_unlock(&turn);
    return result;
}

WRAP_FD(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n))
WRAP_FD(ssize_t, pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at))
WRAP_FD(ssize_t, pwrite64, (int fd, const void *from, size_t n, off64_t at), (fd, from, n, at))
WRAP_FD(ssize_t, writev, (int fd, const struct iovec *from, int n), (fd, from, n))
WRAP_FD(int, ftruncate, (int fd, off_t n), (fd, n))
WRAP_FD(int, ftruncate64, (int fd, off64_t n), (fd, n))
WRAP(int, rename, (const char *from, const char *to), (from, to))
WRAP(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
WRAP(int, renameat2, (int a, const char *from, int b, const char *to, unsigned f), (a, from, b, to, f))
WRAP(int, link, (const char *from, const char *to), (from, to))
WRAP(int, linkat, (int a, const char *from, int b, const char *to, int f), (a, from, b, to, f))
WRAP(int, unlink, (const char *path), (path))
WRAP(int, unlinkat, (int a, const char *path, int f), (a, path, f))
WRAP(int, rmdir, (const char *path), (path))
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(int, mkdirat, (int a, const char *path, mode_t mode), (a, path, mode))

int fsync(int fd) { return step() ? -1 : synced(fd, CALL(int, fsync, (int), (fd))); }
int fdatasync(int fd) { return step() ? -1 : synced(fd, CALL(int, fdatasync, (int), (fd))); }

#define WRAP_OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; va_end(rest); \
        if ((flags & O_CREAT) && step()) return -1; \
        return ((int (*)(const char *, int, ...)) REAL(name))(path, flags, mode); }
#define WRAP_OPENAT(name) \
    int name(int at, const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; va_end(rest); \
        if ((flags & O_CREAT) && step()) return -1; \
        return ((int (*)(int, const char *, int, ...)) REAL(name))(at, path, flags, mode); }
WRAP_OPEN(open)
WRAP_OPEN(open64)
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)

int clock_gettime(clockid_t which, struct timespec *now) {
    int result = CALL(int, clock_gettime, (clockid_t, struct timespec *), (which, now));
    if (!result && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += turned;
    return result;
}
