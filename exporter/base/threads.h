/*
 * Work in several threads at once: one way to start and to wait for them.
 */
#ifndef NI_THREADS_H
#define NI_THREADS_H

#include <stddef.h>

/*
 * Runs work() in up to n threads, the caller's is the first, and returns when all are done. Thread i gets the
 * element i of `arg`, elements have `size` bytes; size 0: each gets arg itself. Which piece of work is whose
 * they settle among themselves. Returns how many there were, 1 at least: where one cannot be had, it and
 * those behind it do not run. What work() returns is not looked at.
 */
size_t ni_threads(size_t n, void *(*work)(void *), void *arg, size_t size);

#endif
