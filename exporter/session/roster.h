/*
 * Who was there, for the next head: clients with what they have, in the store's folder (clients.jsonl), a
 * line each.
 *
 *   grid ─▶ ni_roster_text() ─▶ the writer's thread ─▶ clients.jsonl ─▶ after a kill: ni_roster_read()
 *       ─▶ grid: they are gone, and known
 *
 * So nodes that left before a restart stay in frames and lists, and the numbers of agents are known to go on
 * or to have begun anew. It is kept while sessions run, and is a second old at most. What is no sound line is
 * passed over. Any thread that owns the grid.
 */
#ifndef NI_ROSTER_H
#define NI_ROSTER_H

#include "exporter/session/frame_text.h"

#define NI_ROSTER "clients.jsonl"
struct ni_rostered {
  char id[sizeof((struct ni_client *)0)->id], host[256], uuid[40], version[32];
  uint64_t epoch;
  /* index and name alone; whoever is called has it then; NULL: none are known */
  struct ni_sample *gpus;
};
void ni_roster_text(const struct ni_grid *g, struct ni_buffer *out);
/* 0 or -errno; no file: 0. */
int ni_roster_read(int dir, void (*each)(void *arg, struct ni_rostered *r), void *arg);
#endif
