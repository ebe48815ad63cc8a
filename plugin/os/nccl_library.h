/*
 * Which library calls the plugin, and which release it is of. Looked up once, at the process's first init,
 * with the registry's lock held: may block in the dynamic linker. Nothing is opened that is not loaded,
 * nothing is freed.
 *
 * The activation mask is a number inside the library, so the file it lies in is the library's: `librccl...`
 * or `libnccl...` by its name. Another file has the library linked in: it is RCCL's when it has a name that
 * only RCCL exports, and NCCL's when it exports ncclGetVersion without one. Else nobody knows: a mask that
 * lies in no file, a library whose names are hidden. ncclGetVersion does not tell them apart: RCCL gives
 * NCCL's numbers.
 */
#ifndef NI_NCCL_LIBRARY_H
#define NI_NCCL_LIBRARY_H

#include "format/library.h"

struct ni_nccl_library {
  enum ni_library library;
  int version; /* ncclGetVersion's number (2.27.3 -> 22703, 2.30.7 -> 23007); 0: not found */
};

/* mask: the address that init was given; NULL: none. */
struct ni_nccl_library ni_nccl_library(const void *mask);

#endif
