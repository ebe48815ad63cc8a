/* The file of a log part. One thread. */
#ifndef NI_RECOVER_FILE_H
#define NI_RECOVER_FILE_H

#include <stdint.h>
#include <stdio.h>

#include "exporter/base/out_file.h"

/* A stream whose lines go to fd as gzip; fclose() syncs and says what went wrong, and leaves fd open. NULL: -ENOMEM. */
FILE *ni_recover_lines(int fd);
/* Names the file by the first free stem.N.jsonl.gz from N on; 0 is stem.jsonl.gz. Its name is in name. 0 or -errno. */
int ni_recover_name(struct ni_out_file *o, const char *stem, uint64_t from, char *name, size_t size);

#endif
