/*
 * What the machine says of itself: its name, as it may stand in a path, and how long files may grow.
 *
 * Pure but for gethostname and getrlimit; any thread, never a callback. Never fails.
 */
#ifndef NI_HOST_H
#define NI_HOST_H

#include <stddef.h>
#include <stdint.h>

/* Writes a path-safe copy of text: [A-Za-z0-9._-] stay, all else becomes '_', a leading '.' too; "" becomes `empty`.
 * Cut at cap - 1 bytes; cap > 0. */
void ni_path_component(char *out, size_t cap, const char *text, const char *empty);

/* gethostname, made path-safe; "unknown-host" when it fails. */
void ni_host_name(char *out, size_t cap);

/* Bytes that a file may have by this process's RLIMIT_FSIZE now; UINT64_MAX: no limit. A block above it is never taken. */
uint64_t ni_file_size_limit(void);

#endif
