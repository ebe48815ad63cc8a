/*
 * Old symbol versions for calls that newer glibc gave a newer one, so that an .so built today loads on glibc
 * 2.28.
 *
 * To be included first by every plugin .c that uses one of these functions. glibc 2.34 moved libpthread and
 * libdl into libc and gave their symbols the version GLIBC_2.34; the old names are still there and the same
 * code. The .so lists libpthread.so.0 and libdl.so.2 as needed (Makefile), where a 2.28 system has them.
 * scripts/check_symbols.sh fails the build when anything newer slips in; then add it here, or avoid it: stat
 * family (use file_facts.h), strtol family (2.38 redirects), pthread_setname_np (use prctl), gettid (use
 * syscall), sem_*, pow, exp, log.
 */
#ifndef NI_GLIBC_COMPAT_H
#define NI_GLIBC_COMPAT_H

#include <features.h>

/* Not under the sanitizers: they replace these functions and must see them under their plain names. gcc tells
 * by macros, clang by features. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define NI_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define NI_SANITIZED 1
#endif
#endif

#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(NI_SANITIZED)
#if defined(__x86_64__)
#define NI_GLIBC_BASE "GLIBC_2.2.5"
#define NI_GLIBC_CONDATTR "GLIBC_2.3.3"
#else
#define NI_GLIBC_BASE "GLIBC_2.17"
#define NI_GLIBC_CONDATTR "GLIBC_2.17"
#endif
#define NI_OLD_SYMBOL(name) __asm__(".symver " #name "," #name "@" NI_GLIBC_BASE)

NI_OLD_SYMBOL(pthread_create);
NI_OLD_SYMBOL(pthread_detach);
NI_OLD_SYMBOL(pthread_join);
NI_OLD_SYMBOL(pthread_kill);
NI_OLD_SYMBOL(pthread_once);
NI_OLD_SYMBOL(pthread_sigmask);
NI_OLD_SYMBOL(pthread_attr_setstacksize);
NI_OLD_SYMBOL(pthread_attr_setguardsize);
NI_OLD_SYMBOL(pthread_mutex_trylock);
__asm__(".symver pthread_condattr_setclock,pthread_condattr_setclock@" NI_GLIBC_CONDATTR);
NI_OLD_SYMBOL(dlopen);
NI_OLD_SYMBOL(dlclose);
NI_OLD_SYMBOL(dlsym);
NI_OLD_SYMBOL(dladdr);
NI_OLD_SYMBOL(dlerror);
#endif

#endif
