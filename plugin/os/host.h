/*
 * What the machine says of itself and of this process: names, as they may stand in a path or in the process
 * line, and how long files may grow.
 *
 * Asks the system, keeps nothing; any thread, never a callback. Never fails, at worst a text is "".
 */
#ifndef NI_HOST_H
#define NI_HOST_H

#include <stddef.h>
#include <stdint.h>

/* Writes a path-safe copy of text: [A-Za-z0-9._-] stay, all else becomes '_', a leading '.' too; "" becomes
 * `empty`. Cut at cap - 1 bytes; cap > 0. */
void ni_path_component(char *out, size_t cap, const char *text, const char *empty);

/* gethostname, made path-safe; "unknown-host" when it fails. */
void ni_host_name(char *out, size_t cap);

/*
 * Bytes that a file may have by this process's RLIMIT_FSIZE now; UINT64_MAX: no limit. A block above it is
 * never taken.
 */
uint64_t ni_file_size_limit(void);

/* The kernel's boot id. */
void ni_process_boot_id(char *out, size_t cap);
/* Base name of the executable: hostile text. */
void ni_process_exe(char *out, size_t cap);

#endif
