/* Preloaded into a server: writes down how much of each file was on the disk at last, as
 * two 64-bit numbers, inode and length, for each fsync and fdatasync that is done. The
 * file for it is named by RLOCK_SYNCED. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef int (*call)(int);

static int notes = -1;
static call real_fsync;
static call real_fdatasync;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("RLOCK_SYNCED");
    if (path)
        notes = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    real_fsync = (call)dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = (call)dlsym(RTLD_NEXT, "fdatasync");
}

/* What is written meanwhile, by another thread, does not count. */
static int synced(call real, int fd) {
    struct stat before;
    int known = fstat(fd, &before) == 0 && S_ISREG(before.st_mode);
    int result = real(fd);
    if (result == 0 && known && notes >= 0) {
        uint64_t note[2] = {before.st_ino, before.st_size};
        if (write(notes, note, sizeof note) != sizeof note)
            abort();
    }
    return result;
}

int fsync(int fd) {
    return synced(real_fsync, fd);
}

int fdatasync(int fd) {
    return synced(real_fdatasync, fd);
}
