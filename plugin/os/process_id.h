/*
 * What tells this process from others, for the process line. Reads /proc; never fails, at worst the text is "".
 */
#ifndef NI_PROCESS_ID_H
#define NI_PROCESS_ID_H

#include <stddef.h>

/* The kernel's boot id. */
void ni_process_boot_id(char *out, size_t cap);
/* Base name of the executable: hostile text. */
void ni_process_exe(char *out, size_t cap);

#endif
