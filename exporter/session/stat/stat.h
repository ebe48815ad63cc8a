/*
 * What sessions' files say of each GPU, client, NIC and job: read once in bounded memory, then printed,
 * drawn, or written as JSON.
 *
 *   NAME.json ─▶ bytes, cut at the braces of each frame ─▶ a frame, by simdjson
 *       ─▶ series: sums, extremes, evenly spaced samples
 *
 * Files are ours in both forms, and those of gsprof 0.2.1 and 0.4, however they are laid out: arrays that
 * change their order, members that leave, "nan". gsprof's fractions become percent, its KiB/s GB/s. Memory:
 * one frame (NI_STAT_FRAME_MAX), and NI_STAT_SLOTS samples a series, fewer where there are many: percentiles
 * are exact up to so many frames, then of evenly spaced ones.
 *
 * One thread. Ownership: ni_stat_free(). Texts of the files are hostile: printed by ni_say() and the like
 * alone.
 */
#ifndef NI_STAT_H
#define NI_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum ni_stat_kind { NI_STAT_GPU, NI_STAT_CLIENT, NI_STAT_NIC, NI_STAT_JOB, NI_STAT_KINDS };
enum {
  NI_STAT_FRAME_MAX = 128 << 20,
  NI_STAT_ENTITIES_MAX = 65536,
  NI_STAT_SLOTS = 1024,
  NI_STAT_FIELDS = 22
};

struct ni_stat_field {
  enum ni_stat_kind kind;
  const char *key;         /* of a frame, or of a job in it */
  const char *head, *unit; /* as it is shown */
  double gsprof;           /* gsprof's numbers times this are ours; 0: it has none */
  bool plot;
};
extern const struct ni_stat_field ni_stat_fields[NI_STAT_FIELDS];

struct ni_stat_slot {
  float sample, mean; /* the number in its first frame, NAN: none; the mean of its frames */
  uint32_t n;         /* frames with a number */
};
struct ni_stat_series { /* a field of an entity */
  uint64_t n;           /* frames with a number */
  double sum, min, max;
  struct ni_stat_slot *slot; /* slot i: frames i*step to (i+1)*step-1 */
  size_t slots, cap;
};
struct ni_stat_entity {
  char *name;
  struct ni_stat_series *series; /* NI_STAT_FIELDS of them */
};
struct ni_stat_list {
  struct ni_stat_entity *item;
  size_t n, cap;
};
struct ni_stat_file {
  char *path, name[132]; /* name: of the session, else of the file */
  /* the name; where several files have it, the end of the path as well; of one path twice, a number */
  char label[64];
  bool gsprof; /* in gsprof's units */
  /* frames 0: it ended before its first; damaged: those that are none; step: frames a slot */
  uint64_t frames, damaged, step;
  double seconds; /* from the first frame to the last; NAN: not known */
  char first[40]; /* time of the first frame */
  struct ni_stat_list kind[NI_STAT_KINDS];
};
struct ni_stat_files { /* zeros: none */
  struct ni_stat_file *file;
  size_t n, cap;
};

/* Adds a file. 0; with why not empty it is torn or has damaged frames, and what there was is in. -errno with
 * a sentence in why: nothing was added. */
int ni_stat_add(struct ni_stat_files *all, const char *path, char *why, size_t cap);
/* The same from an open stream, which stays the caller's. */
int ni_stat_add_stream(struct ni_stat_files *all, FILE *f, const char *path, char *why, size_t cap);
void ni_stat_clear(struct ni_stat_file *file);
void ni_stat_free(struct ni_stat_files *all);

/*
 * What a field of all entities of a kind was together: mean over all frames, percentiles over all samples.
 * NAN: it had no number.
 */
struct ni_stat_figures {
  double mean, min, p50, p95, max;
};
struct ni_stat_figures ni_stat_over_all(const struct ni_stat_list *l, size_t field);

/*
 * Tables; of two files and more beside each other, with the difference of the last to the first. all: every
 * entity, else 16 of a kind.
 */
void ni_stat_print(const struct ni_stat_files *all, bool every, FILE *f);
void ni_stat_json(const struct ni_stat_files *all, FILE *f);
/*
 * Pictures over time into a file that ends with .pdf, .png or .svg. 0, or -errno with a sentence in why: no
 * file then.
 */
int ni_stat_plot(const struct ni_stat_files *all, const char *path, char *why, size_t cap);

#endif
