/*
 * A gzip file, written in members that each hold whole lines, with one compressor for all files of the
 * program (one thread).
 */
#ifndef NI_JOBS_GZ_OUT_H
#define NI_JOBS_GZ_OUT_H

#include <stddef.h>

#define NJ_MEMBER (128u << 10) /* text of one member */
#define NJ_LINE_MAX 2048

struct nj_out {
  char path[512];
  char *text;
  size_t n;
  int fd;
};

/* Ends the program with a message when the file cannot be made or written. */
/* Of gzip; 0: stored, which takes a third of the time and three times the space. */
extern int nj_out_level;
void nj_out_open(struct nj_out *o, const char *path);
/* Room for a line of NJ_LINE_MAX; its end is given back. */
char *nj_out_room(struct nj_out *o);
void nj_out_line(struct nj_out *o, const char *end);
void nj_out_close(struct nj_out *o);

#endif
