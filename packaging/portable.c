/*
 * Programs built today that run on glibc 2.28 and libstdc++ of gcc 8: linked into those of a package
 * (packaging/portable.mk).
 *
 * The linker's --wrap leads every reference to NAME, those of static libraries included, to __wrap_NAME, and
 * that to the old version of the symbol, which newer libraries still have. The plugin does the same in
 * plugin/os/glibc_compat.h, by itself, for it is built only so. What no old version exists of is made of
 * calls that do. packaging/dist.sh refuses a program that still asks for something newer: then add it here
 * and to portable.mk.
 */
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#define AT(version) version
#define JUMP "endbr64\njmp old_" /* it may be called by its address (scripts/hardening.mk) */
#define FAR "@PLT"
#define STAT_VERSION 1
#elif defined(__aarch64__)
#define FIRST "GLIBC_2.17" /* its first one: nothing is older */
#define AT(version) FIRST
#define JUMP "hint #34\nb old_" /* bti c */
#define FAR ""
#define STAT_VERSION 0
#endif

/* An old version of a library's function, called as old_NAME; and the wrapper that jumps there. */
#define OLD(name, version) __asm__(".symver old_" #name "," #name "@" version)
#define WRAP(name, version) \
  OLD(name, version); \
  __asm__(".text\n.globl __wrap_" #name "\n.type __wrap_" #name \
          ",%function\n" \
          "__wrap_" #name ": " JUMP #name FAR \
          "\n" \
          ".size __wrap_" #name ",.-__wrap_" #name "\n")

WRAP(dlclose, FIRST);
WRAP(dlerror, FIRST);
WRAP(dlopen, FIRST);
WRAP(dlsym, FIRST);
WRAP(dlinfo, AT("GLIBC_2.3.3"));
WRAP(exp, FIRST);
WRAP(hypot, FIRST);
WRAP(log, FIRST);
WRAP(log2, FIRST);
WRAP(pow, FIRST);
WRAP(pthread_attr_setstacksize, FIRST);
WRAP(pthread_barrier_init, FIRST);
WRAP(pthread_barrier_wait, FIRST);
WRAP(pthread_condattr_setclock, AT("GLIBC_2.3.3"));
WRAP(pthread_create, FIRST);
WRAP(pthread_detach, FIRST);
WRAP(pthread_join, FIRST);
WRAP(pthread_kill, FIRST);
WRAP(pthread_mutex_trylock, FIRST);
WRAP(pthread_mutexattr_destroy, FIRST);
WRAP(pthread_mutexattr_init, FIRST);
WRAP(pthread_mutexattr_settype, FIRST);
WRAP(pthread_once, FIRST);
WRAP(pthread_setname_np, AT("GLIBC_2.12"));
WRAP(pthread_sigmask, FIRST);
WRAP(pthread_timedjoin_np, AT("GLIBC_2.3.3"));

OLD(__xstat, FIRST);
OLD(__lxstat, FIRST);
OLD(__fxstat, FIRST);
OLD(__fxstatat, AT("GLIBC_2.4"));
int old___xstat(int version, const char *path, struct stat *st);
int old___lxstat(int version, const char *path, struct stat *st);
int old___fxstat(int version, int fd, struct stat *st);
int old___fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int __wrap_stat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstatat(int dir, const char *path, struct stat *st, int flags);
int __wrap_stat64(const char *path, struct stat64 *st);
int __wrap_lstat64(const char *path, struct stat64 *st);
int __wrap_fstat64(int fd, struct stat64 *st);
pid_t __wrap_gettid(void);

int __wrap_stat(const char *path, struct stat *st) { return old___xstat(STAT_VERSION, path, st); }
int __wrap_lstat(const char *path, struct stat *st) { return old___lxstat(STAT_VERSION, path, st); }
int __wrap_fstat(int fd, struct stat *st) { return old___fxstat(STAT_VERSION, fd, st); }
int __wrap_fstatat(int dir, const char *path, struct stat *st, int flags) {
  return old___fxstatat(STAT_VERSION, dir, path, st, flags);
}
/* SQLite's archive names these; of 64-bit machines they are the same. */
int __wrap_stat64(const char *path, struct stat64 *st) { return __wrap_stat(path, (struct stat *)st); }
int __wrap_lstat64(const char *path, struct stat64 *st) { return __wrap_lstat(path, (struct stat *)st); }
int __wrap_fstat64(int fd, struct stat64 *st) { return __wrap_fstat(fd, (struct stat *)st); }
pid_t __wrap_gettid(void) { return (pid_t)syscall(SYS_gettid); }

/* operator new[] of a length that cannot be; libstdc++ of gcc 11 has a word of its own for it. */
void bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv") __attribute__((noreturn));
void bad_length(void) __asm__("__wrap__ZSt28__throw_bad_array_new_lengthv") __attribute__((noreturn));
void bad_length(void) { bad_alloc(); }

/*
 * The start: before 2.34 glibc left it to the program's own start file to run its constructors, and the start
 * file of today no longer does. Given a function for it, glibc of any age calls that one.
 */
typedef void constructor(int argc, char **argv, char **env);
OLD(__libc_start_main, FIRST);
int old___libc_start_main(int (*program)(int, char **, char **), int argc, char **argv, constructor *begin,
                          void (*end)(void), void (*loader_end)(void), void *stack);
int __wrap___libc_start_main(int (*program)(int, char **, char **), int argc, char **argv, constructor *begin,
                             void (*end)(void), void (*loader_end)(void), void *stack);
void _init(void);
extern constructor *__preinit_array_start[] __attribute__((visibility("hidden"))),
    *__preinit_array_end[] __attribute__((visibility("hidden")));
extern constructor *__init_array_start[] __attribute__((visibility("hidden"))),
    *__init_array_end[] __attribute__((visibility("hidden")));

static void construct(int argc, char **argv, char **env) {
  for (constructor **c = __preinit_array_start; c < __preinit_array_end; c++)
    (*c)(argc, argv, env);
  _init();
  for (constructor **c = __init_array_start; c < __init_array_end; c++)
    (*c)(argc, argv, env);
}

int __wrap___libc_start_main(int (*program)(int, char **, char **), int argc, char **argv, constructor *begin,
                             void (*end)(void), void (*loader_end)(void), void *stack) {
  return old___libc_start_main(program, argc, argv, begin ? begin : construct, end, loader_end, stack);
}
