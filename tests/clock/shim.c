/* Preloaded into a server: its wall clock is set wrong by as much as a file says, and
 * the module's calls for the time can be made to fail. The file, named by RLOCK_CLOCK,
 * holds 64-bit numbers: the offset in microseconds, how many calls fail, and an offset that
 * takes the place of the first when the module asks for the time next (0: none). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct control {
    volatile int64_t offset_us;
    volatile int64_t failures;
    volatile int64_t next_offset_us;
};

static struct control nothing;
static struct control *control = &nothing;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("RLOCK_CLOCK");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *page = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED)
        control = page;
}

static int is_wall(clockid_t id) {
    return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;
}

static void now(clockid_t id, struct timespec *time) {
    syscall(SYS_clock_gettime, id, time);
    if (!is_wall(id))
        return;
    int64_t offset = control->offset_us;
    time->tv_sec += offset / 1000000;
    time->tv_nsec += offset % 1000000 * 1000;
    if (time->tv_nsec < 0) {
        time->tv_nsec += 1000000000;
        time->tv_sec--;
    } else if (time->tv_nsec >= 1000000000) {
        time->tv_nsec -= 1000000000;
        time->tv_sec++;
    }
}

/* Valkey loads modules such that they look into their own libraries first, which
 * would keep them from finding this one. */
void *dlopen(const char *path, int flags) {
    void *(*real)(const char *, int) = dlsym(RTLD_NEXT, "dlopen");
    return real(path, flags & ~RTLD_DEEPBIND);
}

static int of_the_module(void *caller) {
    Dl_info from;
    return dladdr(caller, &from) && from.dli_fname && strstr(from.dli_fname, "librlock");
}

int clock_gettime(clockid_t id, struct timespec *time) {
    int is_due = control->failures > 0 || control->next_offset_us != 0;
    if (is_due && of_the_module(__builtin_return_address(0))) {
        if (control->next_offset_us != 0) {
            control->offset_us = control->next_offset_us;
            control->next_offset_us = 0;
        }
        if (control->failures > 0) {
            control->failures--;
            errno = EINVAL;
            return -1;
        }
    }
    now(id, time);
    return 0;
}

int gettimeofday(struct timeval *time, void *zone) {
    struct timespec precise;
    (void)zone;
    now(CLOCK_REALTIME, &precise);
    time->tv_sec = precise.tv_sec;
    time->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where) {
    struct timespec precise;
    now(CLOCK_REALTIME, &precise);
    if (where)
        *where = precise.tv_sec;
    return precise.tv_sec;
}
