/*
 * Sections of a partial result in a file: magic and format, then each section with number, length and CRC-32
 * of all three.
 *
 *   "NIPARTIA" format(4)   { number(4) length(8) crc(4) bytes }...   the last one is the end; nothing follows
 *
 * Numbers are little-endian. Until it has its name a file is hidden and locked; those that killed runs left
 * beside it are removed with the next one. A file that was cut or changed anywhere is refused by name; one
 * section at a time is in memory. Main thread. Ownership: ni_sections_close(); a file that is written gets
 * its name by ni_sections_commit() alone.
 */
#ifndef NI_SECTIONS_H
#define NI_SECTIONS_H

#include <stdio.h>

#include "exporter/base/out_file.h"
#include "partial.h"

struct ni_sections {
  FILE *f;                /* while it is read */
  const char *path;       /* the caller's */
  struct ni_out_file out; /* while it is written */
  const char *name;
  uint64_t left; /* bytes of it that were not read */
  uint8_t *bytes;
  size_t cap;
};

/* 0, or -errno with a sentence told to ni_run_fail(). */
int ni_sections_create(struct ni_sections *s, struct ni_run *r, const char *path);
int ni_sections_commit(struct ni_sections *s, struct ni_run *r);
int ni_sections_open(struct ni_sections *s, struct ni_run *r, const char *path);
/* arg is the struct. */
int ni_sections_put(void *arg, enum ni_section id, const void *bytes, size_t n);
int ni_sections_get(void *arg, struct ni_run *r, enum ni_section *id, const uint8_t **bytes, size_t *n);
/* What was not committed goes. A struct of zeros may be closed. */
void ni_sections_close(struct ni_sections *s);

#endif
