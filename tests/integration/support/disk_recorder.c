// For LD_PRELOAD: writes down what the command and its coordinator do to the files below the folder
// $DISK_RECORD_BELOW, and what they send, in the order in which it happened, to the file
// $DISK_RECORD. power_cut.py reads it. The log tree is left out: logs may be lost.
//
// A call and its note are one step for all threads of both processes, but a sync: what was written
// while it was under way may have missed it, so its begin and its end are noted.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct note {
  uint64_t inode, at;
  uint32_t first, second;  // bytes that follow
  uint8_t kind, unused[7];
};

static int record = -1;
static char below[PATH_MAX];
static dev_t device;
static uint64_t syncs;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

#define REAL(type, name, ...)                                                 \
  static type (*real)(__VA_ARGS__);                                           \
  if (real == NULL) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

__attribute__((constructor)) static void begin(void) {
  const char* name = program_invocation_short_name;
  const char* path = getenv("DISK_RECORD");
  const char* folder = getenv("DISK_RECORD_BELOW");
  struct stat st;
  if (path == NULL || folder == NULL || stat(folder, &st) != 0) return;
  if (strcmp(name, "parallelrun") != 0 && strcmp(name, "parallelrun-coordinator") != 0) return;
  device = st.st_dev;
  snprintf(below, sizeof below, "%s/", folder);
  record = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  syncs = (uint64_t)getpid() << 32;
}

static void lock(void) {
  pthread_mutex_lock(&mutex);
  while (flock(record, LOCK_EX) != 0 && errno == EINTR) {
  }
}

static void unlock(void) {
  const int error = errno;
  flock(record, LOCK_UN);
  pthread_mutex_unlock(&mutex);
  errno = error;
}

static void put(uint8_t kind, uint64_t inode, uint64_t at, const void* a, size_t a_size,
                const void* b, size_t b_size) {
  const int error = errno;
  const struct note head = {inode, at, (uint32_t)a_size, (uint32_t)b_size, kind, {0}};
  const struct iovec parts[] = {
      {(void*)&head, sizeof head}, {(void*)a, a_size}, {(void*)b, b_size}};
  if (writev(record, parts, 3) != (ssize_t)(sizeof head + a_size + b_size)) abort();
  errno = error;
}

static void put_path(uint8_t kind, const char* path) {
  struct stat st = {0};
  stat(path, &st);
  put(kind, st.st_ino, 0, path, strlen(path), NULL, 0);
}

static int wanted(const char* path) {
  const size_t size = strlen(below) - 1;  // without the slash at the end
  return record >= 0 && strncmp(path, below, size) == 0 && (path[size] == '/' || path[size] == 0) &&
         strstr(path, "/logs") == NULL;
}

// Of a descriptor, or 0 where it is none of ours.
static uint64_t inode_of(int fd) {
  struct stat st;
  if (record < 0 || fstat(fd, &st) != 0 || st.st_dev != device) return 0;
  return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) ? st.st_ino : 0;
}

static int opened(int (*real)(const char*, int, ...), const char* path, int flags, mode_t mode) {
  if (!wanted(path) || (flags & (O_CREAT | O_DIRECTORY)) == 0) return real(path, flags, mode);
  lock();
  const int fd = real(path, flags, mode);
  if (fd >= 0) put_path((flags & O_CREAT) != 0 ? 'O' : 'D', path);
  unlock();
  return fd;
}

#define OPEN(name)                                  \
  int name(const char* path, int flags, ...) {      \
    REAL(int, #name, const char*, int, ...);        \
    va_list more;                                   \
    va_start(more, flags);                          \
    const mode_t mode = va_arg(more, mode_t);       \
    va_end(more);                                   \
    return opened(real, path, flags, mode);         \
  }
OPEN(open)
OPEN(open64)

#define STEP(call, keep, ...)   \
  do {                          \
    lock();                     \
    const int rc = (call);      \
    if (rc == 0) put##keep(__VA_ARGS__); \
    unlock();                   \
    return rc;                  \
  } while (0)

int mkdir(const char* path, mode_t mode) {
  REAL(int, "mkdir", const char*, mode_t);
  if (!wanted(path)) return real(path, mode);
  STEP(real(path, mode), _path, 'M', path);
}

int unlink(const char* path) {
  REAL(int, "unlink", const char*);
  if (!wanted(path)) return real(path);
  STEP(real(path), _path, 'U', path);
}

int link(const char* from, const char* to) {
  REAL(int, "link", const char*, const char*);
  if (!wanted(to)) return real(from, to);
  STEP(real(from, to), , 'L', 0, 0, from, strlen(from), to, strlen(to));
}

int rename(const char* from, const char* to) {
  REAL(int, "rename", const char*, const char*);
  if (!wanted(to)) return real(from, to);
  STEP(real(from, to), , 'R', 0, 0, from, strlen(from), to, strlen(to));
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  REAL(int, "renameat2", int, const char*, int, const char*, unsigned);
  if (!wanted(to)) return real(from_folder, from, to_folder, to, flags);
  STEP(real(from_folder, from, to_folder, to, flags), , 'R', 0, 0, from, strlen(from), to,
       strlen(to));
}

#define PWRITE(name, offset)                                                      \
  ssize_t name(int fd, const void* bytes, size_t size, offset at) {               \
    REAL(ssize_t, #name, int, const void*, size_t, offset);                       \
    const uint64_t inode = inode_of(fd);                                          \
    if (inode == 0) return real(fd, bytes, size, at);                             \
    lock();                                                                       \
    const ssize_t n = real(fd, bytes, size, at);                                  \
    if (n > 0) put('W', inode, (uint64_t)at, bytes, (size_t)n, NULL, 0);          \
    unlock();                                                                     \
    return n;                                                                     \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define FTRUNCATE(name, offset)                                        \
  int name(int fd, offset size) {                                      \
    REAL(int, #name, int, offset);                                     \
    const uint64_t inode = inode_of(fd);                               \
    if (inode == 0) return real(fd, size);                             \
    STEP(real(fd, size), , 'T', inode, (uint64_t)size, NULL, 0, NULL, 0); \
  }
FTRUNCATE(ftruncate, off_t)
FTRUNCATE(ftruncate64, off64_t)

static int synced(int (*real)(int), int fd) {
  const uint64_t inode = inode_of(fd);
  if (inode == 0) return real(fd);
  lock();
  const uint64_t number = ++syncs;
  put('B', inode, number, NULL, 0, NULL, 0);
  unlock();
  const int rc = real(fd);
  lock();
  if (rc == 0) put('E', inode, number, NULL, 0, NULL, 0);
  unlock();
  return rc;
}

int fsync(int fd) {
  REAL(int, "fsync", int);
  return synced(real, fd);
}

int fdatasync(int fd) {
  REAL(int, "fdatasync", int);
  return synced(real, fd);
}

ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  REAL(ssize_t, "sendmsg", int, const struct msghdr*, int);
  struct stat st;
  if (record < 0 || fstat(fd, &st) != 0) return real(fd, message, flags);
  lock();
  const ssize_t n = real(fd, message, flags);
  char* const bytes = n > 0 ? malloc((size_t)n) : NULL;
  size_t filled = 0;
  for (size_t i = 0; bytes != NULL && i < message->msg_iovlen; ++i) {
    const struct iovec* part = &message->msg_iov[i];
    const size_t left = (size_t)n - filled;
    const size_t size = part->iov_len < left ? part->iov_len : left;
    memcpy(bytes + filled, part->iov_base, size);
    filled += size;
  }
  if (bytes != NULL) put('S', st.st_ino, 0, bytes, filled, NULL, 0);
  free(bytes);
  unlock();
  return n;
}
